import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Head } from "#audit/chain.ts";
import { KcoreError } from "#errors/problem.ts";
import { ifThere, replaceFile } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { kcoreHome } from "../process/kcore-home.ts";

const Noted = z.record(z.string(), z.object({ n: z.int().positive(), hash: z.string().length(64) }));

/** The last head of each trail that this user found whole: from then on nobody can cut a trail short unseen. */
export type NotedHeads = z.infer<typeof Noted>;

function fileOf(): string {
  return join(kcoreHome(), "audit-heads.json");
}

/** @throws KcoreError CONFIG_INVALID: what was noted once must not vanish because somebody damaged the file */
export async function readNotedHeads(): Promise<NotedHeads> {
  const file = fileOf();
  const text = (await ifThere(readFile(file, "utf8"))) ?? "{}";
  try {
    return Noted.parse(JSON.parse(text));
  } catch (cause) {
    const hint = "look at it by hand; without it the next verify begins anew";
    throw new KcoreError({ code: "CONFIG_INVALID", message: `${file} is damaged`, hint }, { cause });
  }
}

export async function noteHeads(noted: NotedHeads, heads: ReadonlyMap<string, Head>): Promise<void> {
  await ensurePrivateFolder(kcoreHome());
  await replaceFile(fileOf(), `${JSON.stringify({ ...noted, ...Object.fromEntries(heads) }, undefined, 2)}\n`);
}
