import { z } from "zod";
import type { Step } from "../define.ts";
import { ownersOf } from "../effects.ts";
import { sh, type Sh } from "../sh.ts";
import { withProbe } from "./files.ts";

/** A user's or group's name, as useradd(8) and BusyBox adduser accept it. */
export const AccountName = z
  .string()
  .regex(/^[a-z_][a-z0-9_-]{0,30}[a-z0-9_$-]?$/, "must be a name of at most 32 small letters, digits, - and _");

/** A user's or group's number. */
export const AccountId = z.number().int().min(0).max(4_294_967_294);

/** Sets `line` to the line of passwd(5), group(5) or shadow(5) whose first field is `name`; empty if there is none. */
export function accountLine(file: string, name: string): Sh {
  return sh`line=
while IFS= read -r entry; do
  case $entry in ${`${name}:`}*) line=$entry && break ;; esac
done <${file}`;
}

/**
 * The step with a check before its probe: without the user who will run the step's job, the step is refused. In a dry
 * run an earlier step may make the user.
 */
export function requireUser(user: string, step: Step): Step {
  const owners = ownersOf({ owner: user });
  if (owners.length === 0) return step;
  const probe = sh`if [ -n "$K_DRY" ]; then (foresee_owner ${user} - 2>/dev/null); else id -u ${user} >/dev/null 2>&1; fi ||
  refuse USER_MISSING ${`there is no user ${user} on this node, in whose name it would run: user.managed makes one`}`;
  return withProbe(step, probe, owners);
}

/** For a dry run: fails if another entry of passwd(5) or group(5) has the number. */
export function numberIsFree(file: string, name: string, id: number): Sh {
  return sh`while IFS=: read -r other _ number _; do
  [ "$number" != ${id} ] || [ "$other" = ${name} ] || { echo ${`${id} is the number of`}" $other" >&2; exit 1; }
done <${file}`;
}
