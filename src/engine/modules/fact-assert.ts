import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AssertCheck } from "../step/fragments/check-fields.ts";
import { tcpFunction } from "../step/fragments/ports.ts";
import { checksOf } from "../step/fragments/checks.ts";
import { sh, shLines } from "../step/sh.ts";

/**
 * ```yaml
 * fact.assert:
 *   that:
 *     - os: { id: [debian, ubuntu] }
 *     - cpus: 2
 *     - memory: 2G
 *     - freeSpace: { path: /var/lib, min: 10G }
 *     - portFree: { port: 9090, unlessUnit: kcore-controller }
 * ```
 * Runs all checks and shows each problem with the value found; one problem fails the step. If all checks hold, a note lists
 * them. Changes nothing.
 */
export const factAssert = defineModule({
  name: "fact.assert",
  summary: "Checks that a node is fit, all checks at once.",
  alsoKnownAs: ["assert", "fail", "preflight", "test.check_pillar", "validate"],
  args: z.strictObject({ that: z.array(AssertCheck).min(1).describe("The checks, each one key.") }),
  step: ({ that }) => {
    const checks = new Map(that.flatMap(checksOf).map((check) => [check.name, check]));
    return {
      effects: { writes: [], reads: [{ is: "system" }] },
      want: Object.fromEntries([...checks.keys()].map((name) => [name, "ok"])),
      // Each check has its own subshell, so none can end or disturb another.
      probe: sh`problem() { fact "$check" "$1"; exit 3; }
${that.some(({ tcp }) => tcp !== undefined) ? tcpFunction : sh``}
bad=
${shLines(
  [...checks.values()].map(
    ({ name, test }) => sh`(check=${name}
${test}
fact "$check" ok) || { [ $? = 3 ] || fact ${name} "cannot tell: the check itself failed"; bad=1; }`,
  ),
)}
[ -n "$bad" ] || note ${`in order: ${[...checks.keys()].join(", ")}`}`,
      timeout: 120,
    };
  },
});
