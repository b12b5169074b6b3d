/** One mount of `/proc/self/mountinfo`. */
export interface Mount {
  readonly device: string;
  /** What of the file system is mounted. */
  readonly root: string;
  readonly point: string;
  readonly type: string;
  readonly source: string;
  /** Of this mount, then of the file system. */
  readonly options: readonly string[];
}

/** proc(5): `id parent major:minor root mount-point options tags... - type source options`, blanks as octal escapes. */
export function parseMountInfo(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split('\n')) {
    const fields = line.split(' ');
    const [, , device, root, point, own = ''] = fields;
    if (device === undefined || root === undefined || point === undefined) continue;
    const dash = fields.indexOf('-', 6);
    const [type = '', source = '', shared = ''] = dash < 0 ? [] : fields.slice(dash + 1);
    const options = [...new Set([...own.split(','), ...shared.split(',')])].filter((option) => option !== '');
    mounts.push({ device, root: unescapeOctal(root), point: unescapeOctal(point), type, source: unescapeOctal(source), options });
  }
  return mounts;
}

/** The mount that holds `path`: later mounts hide earlier ones, so of the longest mount points the last one counts. */
export function mountOf<M extends Pick<Mount, 'point'>>(path: string, mounts: readonly M[]): M | null {
  let best: M | null = null;
  for (const mount of mounts) {
    const covers = mount.point === path || isBelow(path, mount.point);
    if (covers && (best === null || mount.point.length >= best.point.length)) best = mount;
  }
  return best;
}

export function isBelow(path: string, above: string): boolean {
  return above === '/' || path.startsWith(`${above}/`);
}

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
