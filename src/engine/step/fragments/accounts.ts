import { z } from "zod";
import { sh, type Sh } from "../sh.ts";

/** A user's or group's name, as useradd(8) and BusyBox adduser accept it. */
export const AccountName = z
  .string()
  .regex(/^[a-z_][a-z0-9_-]{0,30}[a-z0-9_$-]?$/, "must be a name of at most 32 small letters, digits, - and _");

/** A user's or group's number. */
export const AccountId = z.number().int().min(0).max(4_294_967_294);

/** The line of passwd(5), group(5) or shadow(5) whose first field is `name`, in the variable `line`; else empty. */
export function accountLine(file: string, name: string): Sh {
  return sh`line=
while IFS= read -r entry; do
  case $entry in ${`${name}:`}*) line=$entry && break ;; esac
done <${file}`;
}

/** For a dry run: nobody else in passwd(5) or group(5) has the number. */
export function numberIsFree(file: string, name: string, id: number): Sh {
  return sh`while IFS=: read -r other _ number _; do
  [ "$number" != ${id} ] || [ "$other" = ${name} ] || { echo ${`${id} is the number of`}" $other" >&2; exit 1; }
done <${file}`;
}
