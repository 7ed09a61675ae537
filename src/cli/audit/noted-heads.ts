import { join } from "node:path";
import { z } from "zod";
import type { Head } from "#audit/chain.ts";
import { KcoreError } from "#errors/problem.ts";
import { durableJson } from "#base/durable-file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { kcoreHome } from "../process/kcore-home.ts";

const Noted = z.record(z.string(), z.object({ n: z.int().positive(), hash: z.string().length(64) }));

/** The database of the last heads, by the trail's id. */
export type NotedHeads = ReturnType<typeof durableJson<z.infer<typeof Noted>>>;

/**
 * The last head of each trail that this user found whole: a trail that is cut short later is noticed.
 * @throws KcoreError CONFIG_INVALID: a damaged file must not make heads vanish
 */
export async function openNotedHeads(): Promise<NotedHeads> {
  const file = join(kcoreHome(), "audit-heads.json");
  const db = durableJson(file, Noted, {});
  try {
    await db.read();
    return db;
  } catch (cause) {
    const hint = "look at it by hand; without it the next verify begins anew";
    throw new KcoreError({ code: "CONFIG_INVALID", message: `${file} is damaged`, hint }, { cause });
  }
}

export async function noteHeads(noted: NotedHeads, heads: ReadonlyMap<string, Head>): Promise<void> {
  await ensurePrivateFolder(kcoreHome());
  Object.assign(noted.data, Object.fromEntries(heads));
  await noted.write();
}
