import { z } from "zod";

/** kcore's runtime on a node: its store path, and the generation of its profile. */
export const RuntimeFacts = z.object({
  id: z.string().max(300),
  generation: z.int().optional(),
  arch: z.string().max(32).optional(),
  /** Whether the node can be updated by its cluster: its units follow the profile, and the updater is there. */
  canUpdate: z.boolean().optional(),
  /** Whether the node is a NixOS system; agents before this version do not tell. */
  nixos: z.boolean().optional(),
});
export type RuntimeFacts = z.infer<typeof RuntimeFacts>;
