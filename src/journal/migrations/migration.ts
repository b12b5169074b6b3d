/** One forward step of the schema. Steps are never changed once released; a new one is added instead. */
export interface Migration {
  readonly version: number;
  readonly sql: string;
}
