import { z } from "zod";
import { defineModule, type Step } from "../step/define.ts";
import { AbsolutePath, ByteSize } from "../step/fields.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { readFstab, writeFstab } from "../step/fragments/fstab.ts";
import { underSystemd } from "../step/fragments/mount-unit.ts";
import { commentSwapLines, fitsIntoMemory, readAllSwap } from "../step/fragments/swap-off.ts";
import { readSwapFile, makeSwapFile, roomForSwapFile } from "../step/fragments/swap-file.ts";
import { sh } from "../step/sh.ts";

const fstab = "/etc/fstab";

const args = z
  .strictObject({
    state: z.enum(["on", "off"]).describe("on: a swap file; off: no swap of any kind, now and at boot."),
    path: AbsolutePath.refine(
      (path) => /^[!-~]+$/.test(path) && !/[\\#]/.test(path),
      "must hold no blanks, “\\” or “#”",
    )
      .optional()
      .describe("The swap file; /swapfile unless told otherwise."),
    size: ByteSize.refine((size) => size >= 2 ** 20 && size % 2 ** 20 === 0, "must be whole mebibytes, such as 2GiB")
      .optional()
      .describe("The swap file's size."),
    priority: z
      .int()
      .min(-1)
      .max(32_767)
      .optional()
      .describe("The file's priority; -1 unless told otherwise: behind areas that were there before."),
  })
  .refine(({ state, size }) => state === "off" || size !== undefined, "a swap file needs a size")
  .refine(
    ({ state, path, size, priority }) => state === "on" || [path, size, priority].every((given) => given === undefined),
    "state: off takes nothing else, as it is about all swap",
  );

/**
 * ```yaml
 * swap.managed: { state: "off" }
 * ```
 * `off` suits a kubelet: no swap is in use, fstab's lines for swap become comments, and swap units of systemd's generators
 * or unit files are masked. If a service makes swap at boot, the step names it and is refused. `on` keeps a swap file, and
 * is refused if the path has anything else; swap on a partition, logical volume or array is `swap.enabled`.
 */
export const swapManaged = defineModule({
  name: "swap.managed",
  summary: "Keeps all swap off, or a swap file in use, now and at every boot.",
  alsoKnownAs: ["swap", "mount.swap", "mkswap", "swapfile"],
  args,
  refusals: ["SWAP_ELSEWHERE", "SWAP_NEEDED", ...fileRefusals],
  step: ({ state, path = "/swapfile", size = 0, priority = -1 }) => {
    const { effects, ...step } = state === "off" ? off : fileInUse(path, size, priority);
    return { ...step, ...(effects && { effects }) };
  },
});

const off: Step = {
  effects: {
    writes: [{ is: "path", path: fstab }],
    reads: [
      { is: "path", path: fstab },
      { is: "disk", name: "*" },
    ],
  },
  want: { now: "none", atBoot: "none" },
  probe: sh`${readAllSwap}
at_boot=$lines$units$makers
[ -n "$areas" ] || areas=none
[ -n "$at_boot" ] || at_boot=none
fact now "\${areas% }"
fact atBoot "\${at_boot% }"`,
  guard: sh`${readAllSwap}
[ -z "$lines" ] || not_nixos ${fstab}
[ -z "$makers" ] || refuse SWAP_ELSEWHERE "\${makers% } makes swap at every boot: service.stopped for it, or remove its package"
${fitsIntoMemory}`,
  apply: sh`${readAllSwap}
${commentSwapLines}
if ${underSystemd}; then
  systemctl daemon-reload || exit 1
  set -- $units
  [ $# = 0 ] || systemctl mask -- "$@" || exit 1
fi
for area in $areas; do
  # Blanks in names are \040 there (proc_swaps(5)).
  swapoff "$(printf %b "$area")" || exit 1
done`,
  timeout: 600,
  tools: [{ command: "swapoff", package: "mount" }],
};

function fileInUse(path: string, size: number, priority: number): Step {
  const inUse = priority === -1 ? "yes" : `priority ${priority}`;
  const line = `${path} none swap ${priority === -1 ? "sw" : `sw,pri=${priority}`},nofail 0 0`;
  return {
    effects: {
      writes: [
        { is: "path", path },
        { is: "path", path: fstab },
      ],
      reads: [
        { is: "path", path },
        { is: "path", path: fstab },
      ],
    },
    want: { file: `swap of ${size} bytes`, mode: "600 0:0", fstab: line, active: inUse },
    probe: sh`${readSwapFile(path)}
fact file "$file"
[ -z "$mode" ] || fact mode "$mode"
active=no
while read -r area kind rest; do
  [ "$area" != ${path} ] || active=yes
  ${priority === -1 ? sh`` : sh`[ "$area" != ${path} ] || active="priority \${rest##*[!0-9-]}"`}
done </proc/swaps
fact active "$active"
${readFstab(fstab, { source: path })}
fact fstab "$fstab"`,
    guard: sh`${readSwapFile(path)}
case $file in
  absent | swap*) ;;
  *) refuse FILE_IN_THE_WAY ${`${path} holds something that is no swap area: move it away`} ;;
esac
${readFstab(fstab, { source: path })}
[ "$fstab" = ${line} ] || not_nixos ${fstab}
case $file in ${`swap of ${size} bytes`} | absent) ;; *) ${fitsIntoMemory} ;; esac`,
    foresee: sh`foresee_place ${path} 8 0 root root
${readSwapFile(path)}
if [ "$file" != ${`swap of ${size} bytes`} ] && [ -d ${path.slice(0, path.lastIndexOf("/")) || "/"} ]; then
  ${roomForSwapFile(path, size)}
fi`,
    apply: sh`${readSwapFile(path)}
${makeSwapFile(path, size)}
[ "$mode" = "600 0:0" ] || own_file ${path} 0600 root 0 || exit 1
active=$(had active)
if [ "$active" != ${inUse} ] || [ -n "$made" ]; then
  [ "$active" = no ] || [ -n "$made" ] || swapoff ${path} || exit 1
  swapon ${priority === -1 ? [] : ["-p", String(priority)]} ${path} || exit 1
fi
${readFstab(fstab, { source: path })}
if [ "$fstab" != ${line} ]; then
  ${writeFstab(fstab, { source: path }, line)}
  if ${underSystemd}; then systemctl daemon-reload || exit 1; fi
fi`,
    // Writing a large file to a slow disk may take this long, but never pauses for two minutes.
    timeout: 7200,
    stall: 120,
    tools: [
      { command: "mkswap", package: "util-linux" },
      { command: "swapon", package: "mount" },
    ],
  };
}
