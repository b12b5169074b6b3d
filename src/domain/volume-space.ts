/** What is left on a volume. A file system runs out of either (trap F29), and the gateway then answers 507. */
export interface VolumeSpace {
  readonly totalBytes: number;
  /** For anybody but root; what `df` calls available. */
  readonly freeBytes: number;
  /** `null` for both where the file system does not count them. */
  readonly totalInodes: number | null;
  readonly freeInodes: number | null;
}
