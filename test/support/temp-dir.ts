import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A private folder that is gone again after `remove`. */
export interface TempDir {
  readonly path: string;
  remove(): Promise<void>;
}

export async function makeTempDir(label: string): Promise<TempDir> {
  const path = await mkdtemp(join(tmpdir(), `kcore-${label}-`));
  // A run's process may write its compiled code into it to the last.
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
}
