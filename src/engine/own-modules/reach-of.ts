import { z } from "zod";
import { AbsolutePath, UnitName, UserName } from "#engine/step/fields.ts";
import type { Thing } from "#engine/step/reach.ts";

/** One thing of a node, as `changes` and `restsOn` of a module name it. */
const ThingOf = z.union([
  z.strictObject({ path: AbsolutePath }).transform(({ path }): Thing => ({ is: "path", path })),
  z.strictObject({ tree: AbsolutePath }).transform(({ tree }): Thing => ({ is: "tree", path: tree })),
  z.strictObject({ service: UnitName }).transform(({ service }): Thing => ({ is: "service", name: service })),
  z.strictObject({ user: UserName }).transform(({ user }): Thing => ({ is: "user", name: user })),
  z.strictObject({ group: UserName }).transform(({ group }): Thing => ({ is: "group", name: group })),
  z.strictObject({ packages: z.literal(true) }).transform((): Thing => ({ is: "packages" })),
  z.strictObject({ program: z.string().min(1) }).transform(({ program }): Thing => ({ is: "program", name: program })),
]);

/** What of the node a module may change, and what its look rests on, for dry runs. */
export const ReachOf = z.strictObject({ changes: z.array(ThingOf), restsOn: z.array(ThingOf) });
