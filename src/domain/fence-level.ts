/** How strong the protection of a volume is (`write-protocol.md`, "What the storage itself enforces"). */
export type FenceLevel = 'token' | 'incarnation' | 'fleet';
