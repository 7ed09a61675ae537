import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { isLongForm } from "./hostile.ts";

const root = join(import.meta.dirname, "../..");
let commit: number | undefined;

/**
 * The beginning of a rotating slice: a number from 0 to 2^31 - 1 that depends on the commit, so that every landing tries other seeds.
 * `KCORE_SLICE` sets it, to repeat a run; outside git it is 1.
 */
export function sliceBase(): number {
  const given = process.env["KCORE_SLICE"];
  if (given !== undefined) return Number(given);
  commit ??= Number.parseInt(headCommit().slice(0, 8), 16) >>> 1;
  return commit;
}

/** Every n-th of these cases, others with each commit; the long form of the hostile tests takes all. */
export function partOf<Case>(cases: readonly Case[], everySo: number): readonly Case[] {
  return isLongForm ? cases : cases.filter((_, place) => place % everySo === sliceBase() % everySo);
}

/** So many seeds from the slice's beginning. */
export function seedsOfSlice(count: number): readonly number[] {
  return Array.from({ length: count }, (_, place) => sliceBase() + place);
}

/** Advice for repeating a failed slice. */
export function howToRepeat(): string {
  return isLongForm ? "" : ` (KCORE_SLICE=${sliceBase()} repeats it)`;
}

function headCommit(): string {
  const { status, stdout } = spawnSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : "00000002";
}
