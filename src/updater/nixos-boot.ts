import { join } from "node:path";
import { z } from "zod";
import { UpdateFailure } from "./failure.ts";
import { readProfile, setProfile } from "./nix.ts";
import { bootOnce, bootOnceOf, forgetBootOnce } from "./nixos-loader.ts";
import { switchTo, systemProfile } from "./nixos-systems.ts";
import type { Ports } from "./ports.ts";

/** A boot on trial: its system, and the boot default until that system has held. */
const Trial = z.object({ loader: z.enum(["systemd-boot", "grub"]), path: z.string(), before: z.string() });
type Trial = z.infer<typeof Trial>;

const file = (folder: string): string => join(folder, "boot-once.json");

interface Boot {
  readonly ports: Ports;
  /** The folder of updates. */
  readonly folder: string;
  readonly left: () => number;
}

async function readTrial({ ports, folder }: Pick<Boot, "ports" | "folder">): Promise<Trial | undefined> {
  try {
    return Trial.parse(JSON.parse((await ports.read(file(folder))) ?? ""));
  } catch {
    return undefined;
  }
}

/** The present trial. An operator who has moved the profile since has ended it. */
async function presentTrial(boot: Boot, profile: string | undefined): Promise<Trial | undefined> {
  const trial = await readTrial(boot);
  return trial?.path === profile ? trial : undefined;
}

/**
 * Makes the next boot begin with this system. If the boot loader can boot once, the boot default stays; otherwise this
 * system becomes it.
 */
export async function prepareBoot(boot: Boot, path: string): Promise<void> {
  const { ports, folder, left } = boot;
  const forward = { kind: "activation", left } as const;
  const loader = await bootOnceOf(ports);
  const profile = (await readProfile(ports, systemProfile))?.id;
  const before = (await presentTrial(boot, profile))?.before ?? profile;
  if (loader === undefined || before === undefined || before === path) return makeDefault(boot, path);
  await ports.replace(file(folder), `${JSON.stringify({ loader, path, before } satisfies Trial)}\n`);
  await setProfile(ports, systemProfile, { id: path }, { kind: "activation", limitMs: left() });
  // The former system writes the menu: the new generation is in it, and the former one stays its default.
  await switchTo(ports, before, "boot", forward);
  await bootOnce(ports, loader, (await readProfile(ports, systemProfile))?.generation ?? 0, left);
}

/** Makes the system in use the default of every boot, unless it is already. */
export async function keepDefault(boot: Boot, path: string): Promise<void> {
  const { ports } = boot;
  const profile = (await readProfile(ports, systemProfile))?.id;
  const trial = await presentTrial(boot, profile);
  // The power failed after the system had held, and before it was kept.
  if (trial?.before === path)
    throw new UpdateFailure("reboot", `the node was booted again, with ${path}, before the new system was kept`);
  if (trial || profile !== path) await makeDefault(boot, path);
  else await ports.remove(file(boot.folder));
}

async function makeDefault({ ports, folder, left }: Boot, path: string): Promise<void> {
  await setProfile(ports, systemProfile, { id: path }, { kind: "activation", limitMs: left() });
  await switchTo(ports, path, "boot", { kind: "activation", left });
  await ports.remove(file(folder));
}

/** A trial that has not booted yet does not boot any more. */
export async function endTrial(boot: Boot): Promise<void> {
  const trial = await readTrial(boot);
  if (!trial) return;
  await forgetBootOnce(boot.ports, trial.loader, boot.left);
  await boot.ports.remove(file(boot.folder));
}
