import { blobOf } from "../blob.ts";
import type { Step } from "../define.ts";
import { sh } from "../sh.ts";
import { probeOwnership, wantOwnership } from "./ownership.ts";

const ownership = { mode: "0644", owner: "root", group: "root" } as const;

/** The step of a module that keeps one file of root's with this text, 0644, in a folder that is made if need be. */
export function wholeFile(path: string, text: string): Step {
  const blob = blobOf(text);
  return {
    want: { kind: "file", content: `sha256:${blob.sha256}`, ...wantOwnership(ownership) },
    data: { kind: "file", path, blob, ...ownership, makeDirs: true },
    probe: sh`kind_of ${path}
fact kind "$kind"
[ "$kind" = file ] || exit 0
sum=$(sha256sum <${path}) || exit 1
fact content "sha256:\${sum%% *}"
${probeOwnership(path, ownership)}`,
    guard: sh`guard_file ${path}`,
    keep: sh`keep_path ${path}`,
    foresee: sh`foresee_place ${path} 8 1 root root`,
    apply: sh`parent_of ${path} 1 root
put_file ${blob} ${path} 0644 root root`,
    show: sh`! open_file ${path} || cat <&9`,
    shown: text,
    quiet: true,
  };
}

/** The same module's step where the file shall not be there. */
export function noFile(path: string): Step {
  return {
    want: { kind: "absent" },
    data: { kind: "absent", path, recurse: false },
    probe: sh`kind_of ${path}
fact kind "$kind"`,
    guard: sh`guard_absent ${path} 0`,
    keep: sh`keep_path ${path}`,
    foresee: sh`foresee_place ${path} - 0 - -`,
    apply: sh`remove_path ${path} 0`,
    quiet: true,
  };
}
