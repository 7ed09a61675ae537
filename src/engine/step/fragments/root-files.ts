import type { Blob } from "../blob.ts";
import type { Facts } from "../define.ts";
import { sh, type Sh } from "../sh.ts";

/** A file of root's, 0644, that a module keeps among other things: the names of its facts begin with `name`. */
export function wantRootFile(name: string, { sha256 }: Pick<Blob, "sha256">): Facts {
  return { [name]: `sha256:${sha256}`, [`${name} mode`]: "0644", [`${name} owner`]: "root:root" };
}

/** Its facts; of what is no file only which kind it is, `absent` if there is nothing. */
export function probeRootFile(name: string, path: string): Sh {
  return sh`kind_of ${path}
if [ "$kind" = file ]; then
  sum=$(sha256sum <${path}) && stat=$(stat -c '%a %U:%G' ${path}) || exit 1
  fact ${name} "sha256:\${sum%% *}"
  fact ${`${name} mode`} "$(printf %04d "\${stat% *}")"
  fact ${`${name} owner`} "\${stat#* }"
else
  fact ${name} "$kind"
fi`;
}
