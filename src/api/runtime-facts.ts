import { z } from "zod";

/** kcore's runtime on a node: its store path, the generation of its profile, and bytes that are free where the Nix store lies. */
export const RuntimeFacts = z.object({
  id: z.string().max(300),
  generation: z.int().optional(),
  arch: z.string().max(32).optional(),
  /** Whether the node can be updated by its cluster: its units follow the profile, and the updater is there. */
  canUpdate: z.boolean().optional(),
  storeFree: z.number().optional(),
});
export type RuntimeFacts = z.infer<typeof RuntimeFacts>;
