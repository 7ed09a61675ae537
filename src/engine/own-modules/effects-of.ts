import { z } from "zod";
import { AbsolutePath, UnitName, UserName } from "#engine/step/fields.ts";
import type { Resource } from "#engine/step/effects.ts";

/** One thing of a node, as `changes` and `restsOn` of a module name it. */
const ResourceOf = z.union([
  z.strictObject({ path: AbsolutePath }).transform(({ path }): Resource => ({ is: "path", path })),
  z.strictObject({ tree: AbsolutePath }).transform(({ tree }): Resource => ({ is: "tree", path: tree })),
  z.strictObject({ service: UnitName }).transform(({ service }): Resource => ({ is: "service", name: service })),
  z.strictObject({ user: UserName }).transform(({ user }): Resource => ({ is: "user", name: user })),
  z.strictObject({ group: UserName }).transform(({ group }): Resource => ({ is: "group", name: group })),
  z.strictObject({ packages: z.literal(true) }).transform((): Resource => ({ is: "packages" })),
  z
    .strictObject({ program: z.string().min(1) })
    .transform(({ program }): Resource => ({ is: "program", name: program })),
]);

/** The resources of a node that a module may change, and those that its probe depends on, for dry runs. */
export const EffectsOf = z
  .strictObject({ changes: z.array(ResourceOf), restsOn: z.array(ResourceOf) })
  .transform(({ changes, restsOn }) => ({ writes: changes, reads: restsOn }));
