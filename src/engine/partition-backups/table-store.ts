/** A piece of a disk: bytes from `offset` on. */
export interface TablePiece {
  readonly offset: number;
  readonly length: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** A disk, volume or array as it was when it was saved. */
export interface SavedDevice {
  /** By which it was named: a serial, WWN, link in by-id or by-path, `VG/LV`, `md/ARRAY`. */
  readonly name: string;
  /** The disk's own ids: `serial S3Z8NB0K`; none of a volume or an array. */
  readonly ids: readonly string[];
  /** Bytes. */
  readonly size: number;
  /** In the order of their offsets; they do not overlap. */
  readonly pieces: readonly TablePiece[];
  /** The output of the node's tools about it, by tool. */
  readonly texts: Readonly<Record<string, string>>;
}

/** Why and when. */
export interface SaveOccasion {
  readonly node: string;
  /** The node's id, or its name where it has none. */
  readonly nodeId: string;
  readonly run: string;
  /** The reason for the save: a wipe, or an earlier table that is put back. */
  readonly before: "wipe" | "restore";
  /** The grants that allow the wipe or restore; an interrupted wipe goes on by the same grant. */
  readonly grants: readonly string[];
}

/** The result of a save. */
export interface KeptTable {
  readonly id: string;
  /** Whether no equal save was there. */
  readonly isNew: boolean;
  /** Bytes that it takes. */
  readonly bytes: number;
  /** Drops the occasion, since nothing was wiped or restored; a save without an occasion is removed. */
  readonly forget: () => Promise<void>;
}

/** One save on its way to the bastion's disk; nothing of it counts before it was kept. */
export interface TableSave {
  /** The next piece: its bytes and the same as a gzip member. */
  add(gzip: Uint8Array): Promise<void>;
  /** All is there. Resolves when it lies on the disk. */
  keep(device: SavedDevice, occasion: SaveOccasion): Promise<KeptTable>;
  drop(): Promise<void>;
}

/** Keeps the tables that a run is about to destroy (ADR 0012). */
export interface TableStore {
  open(): Promise<TableSave>;
}
