import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { Duration } from "../step/fields.ts";
import {
  isCutOff,
  isFile,
  isVersion,
  listVersions,
  type Packages,
  versionOf,
  withPackageManager,
} from "../step/fragments/packages.ts";
import { pathsOf } from "../step/effects.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const PackageName = z
  .string()
  .max(200)
  .regex(
    /^([A-Za-z0-9][A-Za-z0-9.+_-]*(:[a-z0-9-]+)?(=[A-Za-z0-9.+~:_-]+\*?|\/[A-Za-z0-9._-]+)?|(\/[A-Za-z0-9.+~:_-]+)+\.(deb|rpm))$/,
    "must be a package's name, name=version, name/release, or the path of a .deb or .rpm on the node",
  );

/**
 * ```yaml
 * package.installed: { names: [gdisk, xfsprogs], updateCache: true }
 * ```
 * For a single package: `name: gdisk`. The node's package manager (apt, apk or dnf) changes all packages in one
 * transaction. Configuration files that were changed on the node are kept, and nothing asks questions. The step waits for
 * another program's lock and never removes it (requirement F-20). A dpkg that was interrupted outside kcore is refused.
 * Names must be real packages, not virtual ones.
 */
export const packageInstalled = defineModule({
  name: "package.installed",
  summary: "Keeps packages installed, at their latest version, or away.",
  alsoKnownAs: [
    "package",
    "apt",
    "dnf",
    "yum",
    "apk",
    "zypper",
    "pkg.installed",
    "pkg.removed",
    "pkg.purged",
    "apt.packages",
    "dnf.packages",
  ],
  args: z
    .strictObject({
      name: PackageName.optional().describe(
        "One package; name=version pins a version (apt, apk), name=1.22.* its beginning (apt), name/RELEASE says where from (apt). Or a .deb (apt) or .rpm (dnf) on the node, whose version is installed.",
      ),
      names: z
        .union([PackageName.transform((name) => [name]), z.array(PackageName).min(1)])
        .optional()
        .describe("Instead of name: one or more packages."),
      state: z.enum(["present", "latest", "absent"]).default("present").describe("The wanted state of all packages."),
      updateCache: z.boolean().default(false).describe("Fetch the lists of packages before a change."),
      recommends: z.boolean().default(false).describe("Install what apt only recommends, too."),
      purge: z.boolean().default(false).describe("With state: absent, remove configuration files too (apt)."),
      lockTimeout: Duration.default(300).describe("How long to wait for the package manager's lock."),
    })
    .refine(({ name, names }) => (name === undefined) !== (names === undefined), "needs name, or names")
    .refine(
      (args) => args.state === "present" || packageNames(args).every((name) => !/[=/]/.test(name)),
      "a version, a release or a file goes only with state: present",
    ),
  refusals: ["PACKAGE_INTERRUPTED", "PACKAGE_LOCKED", "PACKAGE_NEEDED", "TOOL_MISSING"],
  step: (args) => {
    const names = [...new Set(packageNames(args))].map(splitVersion);
    const packages: Packages = { ...args, names };
    const good = ({ version }: PackageSpec) =>
      args.state === "absent" ? "absent" : args.state === "latest" ? "latest" : (version ?? "installed");
    return {
      brings: true,
      effects: {
        writes: [{ is: "packages" }],
        reads: [
          { is: args.state === "absent" ? "noPackages" : "packages" },
          ...pathsOf(names.map(({ name }) => name).filter((name) => name.startsWith("/"))),
        ],
      },
      want: Object.fromEntries(names.map((one) => [one.name, good(one)])),
      probe: factVersions(packages, names),
      guard: withPackageManager((manager) => manager.guard(packages)),
      foresee: withPackageManager((manager) => manager.foresee(packages)),
      apply: withPackageManager((manager) => manager.apply(packages)),
      timeout: 7200 + args.lockTimeout,
      stall: 300 + args.lockTimeout,
    };
  },
});

function packageNames({
  name,
  names = [],
}: {
  readonly name?: string | undefined;
  readonly names?: string[] | undefined;
}): readonly string[] {
  return name === undefined ? names : [name];
}

interface PackageSpec {
  readonly name: string;
  readonly version?: string;
  readonly release?: string;
}

function splitVersion(text: string): PackageSpec {
  const [, name = text, sign, rest = ""] = /^([^/=]+)([/=])(.+)$/.exec(text) ?? [];
  if (sign === undefined) return { name };
  return sign === "=" ? { name, version: rest } : { name, release: rest };
}

/** Reports a fact for each package: `absent`, `latest`, `installed`, or its version; `cut off` if dpkg was interrupted in a step of kcore's. */
function factVersions({ state }: Packages, names: readonly PackageSpec[]): Sh {
  const each = shLines(
    names.map(({ name, version }) => {
      const good = state === "latest" ? "latest" : "installed";
      return sh`${findPackage(name)}
if [ -z "$version" ]; then fact ${name} absent
${state === "latest" ? sh`elif newer=$(newer_of ${name}) && [ -n "$newer" ]; then fact ${name} "$version, $newer is there"` : sh``}
${version === undefined ? sh`else fact ${name} ${good}; fi` : sh`elif ${isVersion(version)}; then fact ${name} ${version}; else fact ${name} "$version"; fi`}`;
    }),
  );
  const cutOff = shLines(names.map(({ name }) => sh`fact ${name} "cut off"`));
  return sh`if ${isCutOff}; then
${cutOff}
else
${askPackages(
  names.map(({ name }) => name),
  state,
)}
${each}
fi`;
}

/**
 * Asks the node's package manager once for all these packages, before {@link findPackage}. The text has only the differing parts of the three
 * package managers, since each look sends it.
 */
function askPackages(names: readonly string[], state: Packages["state"]): Sh {
  const plain = names.filter((name) => !isFile(name));
  return sh`${withPackageManager((manager) =>
    shLines([
      ...(plain.length === 0 ? [] : [listVersions(manager, plain)]),
      ...(plain.length === names.length ? [] : [sh`file_version() { ${manager.installedFile(sh`"$1"`)}; }`]),
      ...(state === "latest" ? [sh`newer_of() { ${manager.newer(sh`"$1"`)}; }`] : []),
    ]),
  )}
${versionOf}`;
}

/** Sets `version` to the installed version of the package, or to nothing. Follows {@link askPackages}. */
function findPackage(name: string): Sh {
  return isFile(name) ? sh`version=$(file_version ${name})` : sh`version_of ${name}`;
}
