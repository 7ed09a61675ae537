import { dirname, join } from "node:path";
import type { UpdateSpec } from "#rollout/spec.ts";
import { versionOf } from "./nix.ts";
import type { Ports } from "./ports.ts";

/** Links to the parts of a system that only a boot brings into use. */
const parts = {
  kernel: "the kernel",
  initrd: "the initrd",
  "kernel-modules": "the kernel's modules",
  systemd: "systemd",
} as const;

/** Changes that only a boot brings into use, in words; empty if the machine was booted with the same parts. */
export async function changesThatNeedBoot(ports: Ports, booted: string, next: string): Promise<readonly string[]> {
  if (booted === next) return [];
  const changes: string[] = [];
  for (const [name, title] of Object.entries(parts)) {
    const [before, after] = [await ports.readLink(join(booted, name)), await ports.readLink(join(next, name))];
    if (before !== after) changes.push(`${title}: ${changeOf(pathVersion(before), pathVersion(after))}`);
  }
  const params = async (system: string): Promise<string> =>
    ((await ports.read(join(system, "kernel-params"))) ?? "").trim();
  const [before, after] = [await params(booted), await params(next)];
  if (before !== after)
    changes.push(`the kernel's parameters: ${before || "none"} -> ${after || "none"}`.slice(0, 450));
  return changes;
}

/** `/nix/store/HASH-linux-6.6.1/bzImage` is 6.6.1. */
function pathVersion(link: string | undefined): string {
  if (link === undefined) return "none";
  const path = /^\/nix\/store\/[^/]+/.exec(link)?.[0] ?? dirname(link);
  return versionOf(path).replace(/-modules(?:-shrunk)?$/, "");
}

function changeOf(before: string, after: string): string {
  if (before !== after && before !== "" && after !== "") return `${before} -> ${after}`;
  return after === "" ? "another one" : `${after}, built anew`;
}

/** The switch to make at once, and the part of the next boot. */
export interface Plan {
  readonly now?: "test" | "switch";
  /** `later`: the next boot, at any time. */
  readonly boot?: "reboot" | "later";
}

/** Plans an activation by the changes that need a boot. */
export function planActivation({ mode, rebootPolicy }: UpdateSpec["activation"], changes: readonly string[]): Plan {
  if (mode === "test") return { now: "test" };
  if (mode === "boot") return { boot: rebootPolicy === "never" ? "later" : "reboot" };
  const isDue = rebootPolicy === "always" || (rebootPolicy === "if-required" && changes.length > 0);
  if (!isDue) return { now: "switch" };
  // In use at once, but the boot default only after it has booted.
  return mode === "switch" ? { now: "test", boot: "reboot" } : { boot: "reboot" };
}
