import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { Duration } from "../step/fields.ts";
import { probeLists } from "../step/fragments/packages.ts";
import { withUpgrader } from "../step/fragments/upgrades.ts";
import { sh } from "../step/sh.ts";

const PackageName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9.+_-]{0,199}$/, "must be a package's name");

/**
 * ```yaml
 * package.upgraded: { except: [postgresql-15], listsMaxAge: 1h }
 * ```
 * apt, apk or dnf brings all packages to their newest version, from lists that are no older than `listsMaxAge`. Packages
 * in `except`, and packages that an administrator holds, stay as they are. If apt or apk would remove packages, the step
 * is refused and names them, unless `removals` is set. Configuration files that were changed on the node are kept. A new
 * kernel runs after the next boot: see `reboot.ifRequired`.
 */
export const packageUpgraded = defineModule({
  name: "package.upgraded",
  summary: "Keeps all packages at their newest version.",
  alsoKnownAs: ["apt", "dist-upgrade", "pkg.uptodate", "apt.upgrade"],
  args: z
    .strictObject({
      except: z.array(PackageName).default([]).describe("Packages that stay as they are (apt, dnf)."),
      mode: z
        .enum(["safe", "full"])
        .default("safe")
        .describe("safe: upgrades that would remove packages are kept back; full: apt-get dist-upgrade."),
      removals: z.boolean().default(false).describe("With mode: full, the upgrade may remove packages."),
      listsMaxAge: Duration.default(86_400).describe(
        "How old the lists of packages may be; older ones are fetched first.",
      ),
      lockTimeout: Duration.default(300).describe("How long to wait for the package manager's lock."),
    })
    .refine(({ mode, removals }) => !removals || mode === "full", "removals is for mode: full"),
  refusals: ["PACKAGE_INTERRUPTED", "PACKAGE_LOCKED", "PACKAGE_NEEDED", "TOOL_MISSING"],
  step: ({ listsMaxAge, ...upgrade }) => {
    // Prints the first 20 lines, separated by commas, and the number of further lines.
    const tell = sh`tell() {
  printf '%s\n' "$1" | sed -e '20q' | tr '\n' ',' | sed -e 's/,$//' -e 's/,/, /g'
  count=$(printf '%s\n' "$1" | wc -l)
  [ "$count" -le 20 ] || printf ' and %s more' $((count - 20))
}`;
    const may = sh`may() {
  ${upgrade.removals ? sh`:` : sh`[ -z "$gone" ] || refuse PACKAGE_NEEDED "these packages would go: $(echo $gone) (removals: true lets them, mode: safe keeps back what needs it)"`}
}`;
    return {
      brings: true,
      effects: { writes: [{ is: "packages" }], reads: [{ is: "packages" }, { is: "system" }] },
      want: { packages: "newest", lists: "fresh" },
      probe: withUpgrader(
        (upgrader) => sh`${tell}
${probeLists(listsMaxAge)}
if ${upgrader.isCutOff}; then fact packages "cut off"; exit 0; fi
${upgrader.plan(upgrade)}
if [ -z "$newer" ]; then fact packages newest; else fact packages "$(printf '%s\n' "$newer" | wc -l | tr -d ' ') to come: $(tell "$newer")"; fi
[ -z "$kept_back" ] || fact "kept back" "$kept_back"
[ -z "$gone" ] || fact "would go" "$(tell "$gone")"`,
      ),
      guard: withUpgrader((upgrader) => upgrader.guard),
      foresee: withUpgrader(
        (upgrader) => sh`${tell}
${may}
lists=$(had lists)
if [ "$lists" = fresh ]; then
  ${upgrader.plan(upgrade)}
  may
${
  upgrader.planWithNewLists === undefined
    ? sh``
    : sh`else
  ${upgrader.planWithNewLists(upgrade)}
  note "with lists of now: $(if [ -n "$newer" ]; then tell "$newer"; else echo nothing to come; fi)"
  may`
}
fi`,
      ),
      apply: withUpgrader(
        (upgrader) => sh`${may}
lists=$(had lists)
${upgrader.apply(upgrade)}`,
      ),
      timeout: 7200 + upgrade.lockTimeout,
      stall: 600 + upgrade.lockTimeout,
    };
  },
});
