/** Chooses the form of an answer by `Accept` (RFC 9110, 12.5.1): the highest weight wins, the server's order breaks ties. */
export function acceptedType<T extends string>(accept: string | undefined, offered: readonly [T, ...T[]]): T {
  const ranges = (accept ?? '*/*').split(',').map(mediaRange);
  let best: T = offered[0];
  let bestWeight = 0;
  for (const type of offered) {
    const weight = weightOf(type, ranges);
    if (weight > bestWeight) {
      best = type;
      bestWeight = weight;
    }
  }
  return best;
}

interface MediaRange {
  readonly type: string;
  readonly weight: number;
}

function mediaRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = q === undefined ? 1 : Number(q.slice(2));
  return { type, weight: weight >= 0 && weight <= 1 ? weight : 0 };
}

/** The most specific range that fits says the weight. */
function weightOf(type: string, ranges: readonly MediaRange[]): number {
  const group = `${type.slice(0, type.indexOf('/'))}/*`;
  for (const wanted of [type, group, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === wanted);
    if (range !== undefined) return range.weight;
  }
  return 0;
}
