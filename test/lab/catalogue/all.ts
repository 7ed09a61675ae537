import type { Sample } from "#support/sample.ts";
import { samples as basics } from "./basics.ts";
import { samples as disks } from "./disks.ts";
import { samples as files } from "./files.ts";
import { samples as nix } from "./nix.ts";
import { samples as policy } from "./policy.ts";
import { samples as programs } from "./programs.ts";
import { samples as sources } from "./sources.ts";
import { samples as system } from "./system.ts";

/** One or two samples of each module, in the order in which they run. */
export const samples: readonly Sample[] = [
  ...basics,
  ...files,
  ...system,
  ...policy,
  ...sources,
  ...disks,
  ...programs,
  ...nix,
];
