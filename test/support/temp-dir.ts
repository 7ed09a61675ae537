import { mkdtempSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A private folder, which `remove` removes with its contents. */
export interface TempDir {
  readonly path: string;
  remove(): Promise<void>;
}

export async function makeTempDir(label: string): Promise<TempDir> {
  const path = await mkdtemp(join(tmpdir(), `kcore-${label}-`));
  // A run's process may write its compiled code into the folder until it ends.
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
}

/** Makes a private folder for each test of the calling suite; the returned function joins names to its path. */
export function folderOfEachTest(label: string): (...names: readonly string[]) => string {
  let folder = "";
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), `kcore-${label}-`))));
  afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return (...names) => join(folder, ...names);
}
