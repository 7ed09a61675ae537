import { defined } from "#optional/defined.ts";
import type { Facts } from "../define.ts";
import { modeNumber } from "../fields.ts";
import { sh, type Sh } from "../sh.ts";

/** Mode, owner and group as a module's arguments give them; what is absent is not managed. */
export interface Ownership {
  readonly mode?: string | undefined;
  readonly owner?: string | undefined;
  readonly group?: string | undefined;
}

/** A mode as facts show it: four octal digits. */
export function fourDigits(mode: string): string {
  return modeNumber(mode).toString(8).padStart(4, "0");
}

export function wantOwnership({ mode, owner, group }: Ownership): Facts {
  return {
    ...(mode === undefined ? {} : { mode: fourDigits(mode) }),
    ...defined({ owner, group }),
  };
}

/** Facts `mode`, `owner`, `group` of a path that exists; an id is printed where the argument was an id. */
export function probeOwnership(path: string, { owner, group }: Ownership): Sh {
  const format = `%a ${isId(owner) ? "%u" : "%U"} ${isId(group) ? "%g" : "%G"}`;
  return sh`stat=$(stat -c ${format} -- ${path}) || exit 1
set -- $stat
fact mode "$(printf %04d "$1")"
fact owner "$2"
fact group "$3"`;
}

function isId(name: string | undefined): boolean {
  return name !== undefined && /^\d+$/.test(name);
}
