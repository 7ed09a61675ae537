import { join } from "node:path";
import type { FailureKind } from "#rollout/records.ts";
import { UpdateFailure } from "./failure.ts";
import { describeEnd } from "./nix.ts";
import { runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";

/** It is in use, and units of it have failed. */
const unitsFailed = 4;

/**
 * Has a system's own program bring it into use (`test`), make it what boots begin with (`boot`), or both (`switch`). Units that fail are
 * a failure on the way forward; on the way back they were there before, or wait for a person.
 * @throws UpdateFailure
 */
export async function switchTo(
  ports: Ports,
  path: string,
  action: "test" | "switch" | "boot",
  { kind, left }: { readonly kind: FailureKind; readonly left: () => number },
): Promise<void> {
  const program = join(path, "bin/switch-to-configuration");
  const ended = await runOutside(ports, [program, action], left);
  if (ended.code === 0 || (ended.code === unitsFailed && kind === "rollback")) return;
  throw new UpdateFailure(ended.code === unitsFailed ? "service" : kind, `${program} ${action} ${describeEnd(ended)}`);
}
