const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Text inside a page. */
export function text(raw: string): string {
  return raw.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character);
}

/** A small page that loads nothing. `body` is markup. */
export function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${text(title)}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}code{background:#f0f0f0;padding:.1em .3em}a{color:#0645ad}@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}code{background:#333}a{color:#8ab4f8}}</style></head>
<body><main>${body}</main></body>
</html>
`;
}
