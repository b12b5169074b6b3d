const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h)$/;

/**
 * `30s`, `500ms`, `5m`, `1.5h` as whole milliseconds; `null` for anything else. A number without a unit is none: nobody can know what
 * was meant by it, except for `0`.
 */
export function durationMs(text: string): number | null {
  if (text === '0') return 0;
  const [, number = '', unit = ''] = DURATION.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  return unitMs === undefined ? null : Math.round(Number(number) * unitMs);
}

/** For people: `1h 2m`, `4m 5s`, `12.3s`, `300ms`. */
export function shownDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  // What would be rounded up to a minute is shown as one.
  if (ms < 59_950) return `${Number((ms / 1_000).toFixed(1))}s`;
  const seconds = Math.round(ms / 1_000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const parts = hours > 0 ? [`${hours}h`, `${minutes}m`] : [`${minutes}m`, `${rest}s`];
  return parts.filter((part, index) => index === 0 || !part.startsWith('0')).join(' ');
}

const TIME = /^(\d{4})-(\d{2})-(\d{2})[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** A date and time as in RFC 3339, its zone included; `null` for anything else, such as the day after the last one of its month. */
export function timeMs(text: string): number | null {
  const [, year, month, day] = TIME.exec(text) ?? [];
  const atMs = Date.parse(text.toUpperCase().replace(' ', 'T'));
  if (day === undefined || Number.isNaN(atMs)) return null;
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= lastDay ? atMs : null;
}
