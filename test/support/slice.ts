import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { isLongForm } from "./hostile.ts";

const root = join(import.meta.dirname, "../..");
let commit: number | undefined;

/**
 * Where a rotating slice begins: a number from 0 to 2^31 - 1 that is the same for one commit, so that every landing tries other seeds.
 * `KCORE_SLICE` names another one, to repeat a run; outside git it is 1.
 */
export function sliceBase(): number {
  const given = process.env["KCORE_SLICE"];
  if (given !== undefined) return Number(given);
  commit ??= Number.parseInt(headCommit().slice(0, 8), 16) >>> 1;
  return commit;
}

/** Every so many of these, others with each commit; the long form of the hostile tests takes them all. */
export function partOf<Case>(cases: readonly Case[], everySo: number): readonly Case[] {
  return isLongForm ? cases : cases.filter((_, place) => place % everySo === sliceBase() % everySo);
}

/** So many seeds, from where the slice begins. */
export function seedsOfSlice(count: number): readonly number[] {
  return Array.from({ length: count }, (_, place) => sliceBase() + place);
}

/** The words that tell how a failed slice is repeated. */
export function howToRepeat(): string {
  return isLongForm ? "" : ` (KCORE_SLICE=${sliceBase()} repeats it)`;
}

function headCommit(): string {
  const { status, stdout } = spawnSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : "00000002";
}
