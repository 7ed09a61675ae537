import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { Duration } from "../step/fields.ts";
import {
  askVersions,
  findVersion,
  listsStamp,
  probeLists,
  withPackageManager,
  type PackageManager,
  type Packages,
} from "../step/fragments/packages.ts";
import { rawSh, sh, type Sh } from "../step/sh.ts";

/**
 * ```yaml
 * kernel.updated: {}
 * ```
 * Finds the packages that follow the distribution's newest kernel (Debian's linux-image-amd64, dnf's kernel, Alpine's
 * linux-lts), and upgrades them to their newest version. The package lists are no older than `listsMaxAge`. The old kernel
 * runs until the next boot: see `reboot.ifRequired`.
 */
export const kernelUpdated = defineModule({
  name: "kernel.updated",
  summary: "Keeps the newest kernel of the distribution installed; it runs after a boot.",
  alsoKnownAs: ["apt", "dist-upgrade", "pkg.latest"],
  args: z.strictObject({
    listsMaxAge: Duration.default(86_400).describe(
      "How old the lists of packages may be; older ones are fetched first.",
    ),
    lockTimeout: Duration.default(300).describe("How long to wait for the package manager's lock."),
  }),
  refusals: ["KERNEL_UNKNOWN", "PACKAGE_INTERRUPTED", "PACKAGE_LOCKED", "TOOL_MISSING"],
  step: ({ listsMaxAge, lockTimeout }) => {
    const packages: Packages = {
      // Unquoted: findKernels sets only names without blanks or wildcards, which are separate words here.
      names: [{ name: rawSh("$kernels") }],
      state: "latest",
      updateCache: true,
      recommends: false,
      purge: false,
      lockTimeout,
    };
    return {
      effects: { writes: [{ is: "packages" }], reads: [{ is: "packages" }, { is: "system" }] },
      want: { kernel: "latest", lists: "fresh" },
      probe: withPackageManager(
        (manager) => sh`${findKernels}
fact packages "$kernels"
fact runs "$(uname -r)"
${newerOnes(manager)}
fact kernel "\${newer:-latest}"
${probeLists(listsMaxAge)}`,
      ),
      guard: withPackageManager((manager) => manager.guard(packages)),
      foresee: withPackageManager(
        (manager) => sh`${findKernels}
${manager.foresee(packages)}`,
      ),
      apply: withPackageManager(
        (manager) => sh`${findKernels}
(
${manager.apply(packages)}
) || exit 1
: >${listsStamp}`,
      ),
      timeout: 7200 + lockTimeout,
      stall: 600 + lockTimeout,
    };
  },
});

/** Sets `kernels` to the installed packages that follow the newest kernel, without packages of a single kernel version; or refuses. */
const findKernels = sh`kernels=$(
  if have dpkg-query; then
    dpkg-query -W -f '\${db:Status-Status} \${Package}\n' 'linux-image-*' 2>/dev/null |
      sed -n -e '/linux-image-unsigned-\|-dbg$\|linux-image-[0-9]/d' -e 's/^installed //p'
  elif have apk; then apk info 2>/dev/null | grep -E '^linux-(lts|virt|stable|edge|rpi[0-9]*)$'
  else rpm -q --qf '%{NAME}\n' kernel kernel-core 2>/dev/null | grep -v ' ' | sort -u; fi | tr '\n' ' '
)
kernels=\${kernels% }
[ -n "$kernels" ] || refuse KERNEL_UNKNOWN "no package that follows the distribution's kernel is installed on this node (linux-image-amd64, kernel, linux-lts); package.installed installs one"`;

/** Sets `newer` to the packages with a newer version than the installed one, each with both versions. */
function newerOnes(manager: PackageManager): Sh {
  return sh`newer=
# shellcheck disable=SC2086 # names of packages
${askVersions(manager, sh`$kernels`)}
for name in $kernels; do
  ${findVersion(manager, sh`"$name"`)}
  candidate=$(${manager.newer(sh`"$name"`)})
  [ -z "$candidate" ] || newer="$newer\${newer:+, }$name $version: $candidate is there"
done`;
}
