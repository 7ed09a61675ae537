import type { Blob } from "../blob.ts";
import type { Facts } from "../define.ts";
import { sh, type Sh } from "../sh.ts";

/** A file of root's with one text, beside others of the same step: one fact, of the given name, says all of it. */
export interface ConfigFile {
  readonly fact: string;
  readonly path: string;
  readonly blob: Blob;
}

export function wantFile({ fact, blob }: ConfigFile): Facts {
  return { [fact]: `sha256:${blob.sha256} 644 root root` };
}

/** The fact; `$kind` is `absent`, or what stands there, or its hash, mode, owner and group. */
export function probeFile({ fact, path }: Pick<ConfigFile, "fact" | "path">): Sh {
  return sh`kind_of ${path}
if [ "$kind" = file ]; then
  sum=$(sha256sum <${path}) && stat=$(stat -c '%a %U %G' ${path}) || exit 1
  kind="sha256:\${sum%% *} $stat"
fi
fact ${fact} "$kind"`;
}

export function putFile({ path, blob }: ConfigFile): Sh {
  return sh`parent_of ${path} 1 && put_file ${blob} ${path} 0644 root root || exit 1`;
}
