import { z } from "zod";

/** kcore's runtime on a node: its store path, and the generation of its profile. */
export const RuntimeFacts = z.object({
  id: z.string().max(300),
  generation: z.int().optional(),
  arch: z.string().max(32).optional(),
  /** Whether the cluster can update the node: it has the updater's profile and the path unit that starts the updater. */
  canUpdate: z.boolean().optional(),
  /** Whether the node is a NixOS system; older agents do not report it. */
  nixos: z.boolean().optional(),
});
export type RuntimeFacts = z.infer<typeof RuntimeFacts>;
