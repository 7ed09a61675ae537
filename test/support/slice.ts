import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { isLongForm } from "./hostile.ts";

const root = join(import.meta.dirname, "../..");
let commit: number | undefined;

/**
 * The first number of a rotating slice: from 0 to 2^31 - 1 by the commit, so that each commit tries other seeds.
 * `KCORE_SLICE` sets it, to repeat a run; outside git it is 1.
 */
export function sliceBase(): number {
  const given = process.env["KCORE_SLICE"];
  if (given !== undefined) return Number(given);
  commit ??= Number.parseInt(headCommit().slice(0, 8), 16) >>> 1;
  return commit;
}

/** Every `everySo`-th of these cases, other ones with each commit; the long form of the hostile tests takes all. */
export function partOf<Case>(cases: readonly Case[], everySo: number): readonly Case[] {
  return isLongForm ? cases : cases.filter((_, index) => index % everySo === sliceBase() % everySo);
}

/** `count` seeds from the slice's first number on. */
export function seedsOfSlice(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => sliceBase() + index);
}

/** Advice for repeating a failed slice. */
export function howToRepeat(): string {
  return isLongForm ? "" : ` (KCORE_SLICE=${sliceBase()} repeats it)`;
}

function headCommit(): string {
  const { status, stdout } = spawnSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : "00000002";
}
