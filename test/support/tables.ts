import type { KeptTable, SavedDevice, SaveOccasion, TableStore } from "#engine/partition-backups/saved-tables.ts";

/** A store for tests without grants: it rejects every call. */
export const noTables: TableStore = {
  open: () => Promise.reject(new Error("the test saves no table")),
};

/** A store in memory that lists the kept backups in order, and counts the dropped ones. */
export class MemoryTables implements TableStore {
  readonly kept: { readonly device: SavedDevice; readonly occasion: SaveOccasion; readonly gzip: Buffer }[] = [];
  dropped = 0;
  /** The names of the devices whose backup was forgotten, since nothing was wiped. */
  readonly forgotten: string[] = [];
  /** The error of each attempt to keep a backup. */
  failure: Error | undefined;

  open(): ReturnType<TableStore["open"]> {
    const parts: Uint8Array[] = [];
    return Promise.resolve({
      add: (gzip) => Promise.resolve(void parts.push(gzip)),
      drop: () => Promise.resolve(void (this.dropped += 1)),
      keep: (device, occasion): Promise<KeptTable> => {
        if (this.failure) return Promise.reject(this.failure);
        const gzip = Buffer.concat(parts);
        this.kept.push({ device, occasion, gzip });
        return Promise.resolve({
          id: String(this.kept.length),
          isNew: true,
          bytes: gzip.length,
          forget: () => Promise.resolve(void this.forgotten.push(device.name)),
        });
      },
    });
  }
}
