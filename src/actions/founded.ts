import { access } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "#pki/private-files.ts";
import type { Context } from "#pki/contexts.ts";

/** Whether a controller of this cluster was ever seen ready from here. A cluster is founded once. */
export function wasFounded(cluster: Pick<Context, "folder">): Promise<boolean> {
  return access(fileOf(cluster)).then(
    () => true,
    () => false,
  );
}

/** A controller at this endpoint is ready: the cluster exists from now on, whatever becomes of its machines. */
export async function noteFounded(cluster: Pick<Context, "folder">, endpoint: string): Promise<void> {
  if (await wasFounded(cluster)) return;
  await replaceFile(fileOf(cluster), `${JSON.stringify({ seen: endpoint, at: new Date().toISOString() })}\n`);
}

function fileOf({ folder }: Pick<Context, "folder">): string {
  return join(folder, "founded.json");
}
