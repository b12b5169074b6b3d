/** What the demo prints. */

export interface AuditLine {
  readonly seq: number;
  readonly at: string;
  readonly action: string;
  readonly outcome: string;
  readonly code: string | null;
  readonly client_id: string | null;
  readonly fencing_token: string | null;
  readonly high_water_mark: string | null;
}

const startedMs = performance.now();

/** One sentence with the seconds since the demo began. */
export function say(sentence: string): void {
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1).padStart(4);
  process.stdout.write(`${sentence.startsWith('\n') ? '\n' : ''}${seconds} s  ${sentence.trimStart()}\n`);
}

/** A table of the records, oldest first. */
export function sayAudit(records: readonly AuditLine[]): void {
  const rows = [
    ['seq', 'time', 'action', 'outcome', 'code', 'client', 'token', 'mark'],
    ...records.map((r) => [
      String(r.seq),
      r.at.slice(11, 23),
      r.action,
      r.outcome,
      r.code ?? '',
      r.client_id ?? '',
      r.fencing_token ?? '',
      r.high_water_mark ?? '',
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows)
    process.stdout.write(
      `  ${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    );
}

/** How to do the same by hand. */
export function sayCommands(resource: string): void {
  process.stdout.write(`
To repeat it by hand, start a gateway (fencegate serve, or npm start in the repository), then in another shell:

  URL=http://127.0.0.1:8080
  acquire() { curl -sS --fail-with-body -X POST "$URL/v1/leases" -H 'Content-Type: application/json' \\
      -d "{\\"resource\\":\\"${resource}\\",\\"ttl_ms\\":2000,\\"wait_ms\\":10000}" | grep -o '"fencing_token":"[0-9]*"' | tr -dc 0-9; }
  A=$(acquire)            # A holds the file for two seconds, and says nothing more
  B=$(acquire)            # B waits until A's lease is over
  printf 'from B\\n' > b.csv
  printf 'from A\\n' > a.csv
  curl -sS --fail-with-body -T b.csv -H "X-Fencing-Token: \${B:?}" "$URL/v1/files/${resource}"
  curl -sS --fail-with-body -T a.csv -H "X-Fencing-Token: \${A:?}" "$URL/v1/files/${resource}"; echo "exit code $?"
  curl -sS "$URL/v1/audit?path=${resource.slice(resource.indexOf('/') + 1)}&limit=5"
`);
}
