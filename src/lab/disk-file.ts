import { join } from "node:path";
import type { NodeRecord } from "./record.ts";

/** The sparse file that is a node's data disk. */
export function diskFile({ folder }: NodeRecord, index: number): string {
  return join(folder, `disk${index}.img`);
}
