import { z } from "zod";
import { blobName, blobOf, fileBlob } from "../step/blob.ts";
import { defineModule, type Step } from "../step/define.ts";
import { AbsolutePath, Duration, Sha256 } from "../step/fields.ts";
import { giveOrders, readUpdaterJournal, type UpdateOnNode } from "../step/fragments/updater.ts";
import { sh, type Sh } from "../step/sh.ts";

const Word = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/, "must be letters, digits, “.”, “_”, “:”, “@” and “-”");

const args = z.strictObject({
  to: z
    .enum(["reached", "fenced", "prepared", "activated", "booted", "held", "rolled_back"])
    .describe(
      "How far: an updater is there; this owner counts; the target is ready; is in use; a needed boot is done; the target is kept; the former version is back.",
    ),
  update: Word.describe("The update's name."),
  owner: Word.describe("The owner that gives the orders; the node refuses the owners of lower epochs."),
  target: z
    .string()
    .max(1_000)
    .regex(
      /^(\/nix\/store\/[0-9abcdfghijklmnpqrsvwxyz]{32}-[A-Za-z0-9+._?=-]{1,211}|[a-z][a-z0-9+-]*:[^"\\\p{C}]+)$/u,
      "must be a store path, or a flake at a commit",
    )
    .describe("The new version: the store path of the runtime, or the flake of the NixOS system at its commit."),
  signed: z
    .strictObject({
      order: z.string().describe("The fields of an order that the bastion signed, as JSON."),
      epoch: z.int().min(0).describe("The epoch for which the bastion signed the owner."),
    })
    .meta({ examples: [{ order: '"signed":{},"ownership":{}', epoch: 1764450000000 }] })
    .optional()
    .describe("The update and its owner, of update.sign; the node carries out nothing else."),
  bundle: z
    .strictObject({
      file: AbsolutePath.describe("The bundle's bytes on the bastion."),
      sha256: Sha256.describe("The bundle's SHA-256."),
      size: z.int().positive().describe("The bundle's size in bytes."),
    })
    .meta({ examples: [{ file: "/var/cache/kcore/kcore.nar.gz", sha256: "0".repeat(64), size: 1048576 }] })
    .optional()
    .describe("The bundle on the bastion, for nodes that lack the target."),
  limit: Duration.default(600).describe("How long the updater may take."),
  own: z.boolean().default(false).describe("Go back only from what this owner brought."),
  profile: AbsolutePath.default("/nix/var/nix/profiles/kcore").describe("The profile of kcore's runtime."),
  tried: z
    .boolean()
    .default(false)
    .describe("Does a running target count although the next boot drops it? As with activation.mode test."),
  system: AbsolutePath.default("/run/current-system").describe(
    "Of a NixOS system, the link to compare: the system in use, or the profile, which the next boot begins with.",
  ),
});
type Args = z.output<typeof args>;

/**
 * ```yaml
 * runtime.updated:
 *   to: activated
 *   update: release-1
 *   owner: bastion-20261121
 *   target: /nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0
 * ```
 * Gives an order to the node's own updater, which carries the order out, and rolls back by itself after a failure. The
 * updater refuses owners of lower epochs (docs/updates.md). `activated` ends when only the bastion's confirmation is
 * missing, which `held` gives over a new connection (`reconnect` of a stage). If the updater is about to boot the node,
 * `activated`, `held` and `rolled_back` end before the boot. Then a step `booted` waits for the boot, and a repetition of
 * the first step reports the result. A node that runs the target already gets no order to `fenced`, `prepared` or
 * `activated`.
 */
export const runtimeUpdated = defineModule({
  name: "runtime.updated",
  summary: "Brings kcore's runtime, or a NixOS system, to another version, by the node's own updater, or back.",
  alsoKnownAs: ["update", "upgrade", "rollout", "kcore-updater"],
  args,
  refusals: ["UPDATER_MISSING", "UPDATER_SILENT", "UPDATE_FAILED", "UPDATE_GATE_FAILED", "UPDATE_REFUSED"],
  step: (given, { stateDir }) => {
    const { profile, system } = given;
    const updates: UpdateOnNode = {
      ...given,
      epoch: given.signed?.epoch ?? 0,
      folder: `${stateDir}/updates`,
      runs: isSystem(given) ? { system } : { profile },
    };
    const timeout = given.limit + 180;
    return {
      effects: effectsOf(given, updates),
      ...stepParts(given, updates),
      timeout,
    };
  },
});

function isSystem({ target }: Args): boolean {
  return !target.startsWith("/nix/store/");
}

/** Each order writes a path of its own, so that in a dry run an order does not make the verdicts of later orders unknown. */
function effectsOf(given: Args, { folder }: UpdateOnNode): NonNullable<Step["effects"]> {
  const { to, profile, system } = given;
  if (to === "booted") return { writes: [{ is: "boot" }], reads: [] };
  const runtime = { is: "tree", path: isSystem(given) ? system : profile } as const;
  const orders = { is: "path", path: `${folder}/${to}` } as const;
  return { writes: to === "activated" || to === "rolled_back" ? [runtime, orders] : [orders], reads: [runtime] };
}

type RuntimeStep = Pick<Step, "want" | "probe" | "guard" | "asks" | "offers" | "apply" | "ends">;

function stepParts(given: Args, updates: UpdateOnNode): RuntimeStep {
  const { to, target, limit, owner, update, own, profile } = given;
  const { folder } = updates;
  // A node that is about to boot for this order counts as running the target: the step can do nothing before the boot.
  const probeWith = (more: Sh): Sh => sh`${readUpdaterJournal(updates)}
read_updates
${to === "activated" || to === "held" ? sh`[ -z "$boots" ] || runtime=${target}` : sh`:`}
fact runtime "$runtime"
${more}`;
  const applyWith = (more: Sh): Sh => sh`${readUpdaterJournal(updates)}
${giveOrders(updates, blobOf(given.signed?.order ?? ""))}
${more}`;
  switch (to) {
    case "reached":
      return {
        want: { updater: "there" },
        probe:
          probeWith(sh`there() { [ -L ${`${profile}-updater`} ]${isSystem(given) ? sh` || [ -e /etc/systemd/system/kcore-updater.path ]` : sh``}; }
there || unsure || refuse UPDATER_MISSING "this node has no updater yet: kcore orchestrate deploy_node $K_NODE"
there || exit 1
fact updater there
if [ -n "$previous" ]; then fact changed yes; else fact changed no; fi`),
      };
    case "fenced":
      return {
        want: { fenced: "yes" },
        probe: probeWith(sh`fact owner "\${f_owner:-nobody}"
if [ "$f_name $f_owner" = ${`${update} ${owner}`} ] || [ "$runtime" = ${target} ]; then fact fenced yes; else fact fenced no; fi`),
        guard: sh`${readUpdaterJournal(updates)}
read_updates
[ -z "$busy" ] || [ "$f_name" = ${update} ] ||
  refuse UPDATE_REFUSED "the node is busy with the update $f_name of $f_owner"`,
        // `fence` has no result of its own: the updater repeats its last report with the new owner's fence.
        apply: applyWith(sh`order fence && await fenced ${Math.min(limit, 120)}`),
      };
    case "prepared":
      return {
        want: { prepared: target },
        probe: probeWith(sh`case $ours:$ordered:$r_state in
  1:prepare:prepared | 1:activate:*) fact prepared ${target} ;;
  *) if [ "$runtime" = ${target} ]; then fact prepared ${target}; else fact prepared no; fi ;;
esac`),
        ...deliver(given, folder),
        apply: applyWith(sh`${given.bundle ? putBundle(given.bundle, folder) : sh`:`}
order prepare && await prepared ${limit} && rm -f ${bundleFile(given, folder)}`),
      };
    case "activated":
      return {
        want: { runtime: target },
        probe: probeWith(sh``),
        apply: applyWith(sh`order activate && await activating ${limit}`),
      };
    case "booted":
      return {
        want: { boot: "done" },
        probe: probeWith(sh`if [ -n "$boots" ]; then fact boot needed; else fact boot "done"; fi`),
        apply: sh`:`,
        ends: "boot",
      };
    case "held":
      return {
        want: { runtime: target, update: "held" },
        probe: probeWith(sh`case $ours$r_state$boots in
  1activating | 1rebooting) fact update waits ;;
  1failed) fact update failed ;;
  *) fact update held ;;
esac`),
        apply: applyWith(sh`read_updates
[ -n "$ours" ] || refuse UPDATE_REFUSED "the node belongs to the update $f_name of $f_owner, epoch $f_epoch"
order hold && await activated ${limit}`),
      };
    case "rolled_back":
      return {
        want: { back: "yes" },
        // A running target without `previous`: it ran before the update, or a later update replaced the one former version
        // that a node keeps.
        probe: probeWith(sh`back=yes
case $runtime:$previous in
  ${target}:) note "the node has nothing to go back to from this update" ;;
  ${target}:1) back=no ;;
esac
# The updater is rolling back after a boot, or the rollback has failed.
case $ours$ordered$r_state in 1roll_backrolling_back | 1roll_backfailed) back=no ;; esac
[ -z "$boots" ] || back=yes
${own ? sh`[ "$f_owner" = ${owner} ] || back=yes` : sh`:`}
fact back "$back"`),
        apply: applyWith(sh`order roll_back && await rolled_back ${limit}`),
      };
  }
}

/** Asks for the bundle, unless the store has an undamaged copy of the path, or the updater's folder has the bundle. */
function deliver({ bundle, target }: Args, folder: string): Pick<RuntimeStep, "asks" | "offers"> {
  if (!bundle) return {};
  const blob = fileBlob(bundle, target.slice("/nix/store/".length + 33));
  const file = bundleFile({ bundle }, folder);
  return {
    offers: [blob],
    asks: sh`nix-store --check-validity ${target} 2>/dev/null && nix-store --verify-path ${target} >/dev/null 2>&1 && exit 0
[ -f ${file} ] && [ "$(sha256sum <${file})" = ${`${bundle.sha256}  -`} ] || echo ${`${blobName(blob)} ${blob.size} bundle`}`,
  };
}

/** Puts the received bundle into the updater's folder. */
function putBundle(bundle: NonNullable<Args["bundle"]>, folder: string): Sh {
  const file = bundleFile({ bundle }, folder);
  return sh`umask 077
mkdir -p ${`${folder}/bundles`} || exit 1
while read -r name size what; do
  ln -f "$K_RUN/blobs/$name" ${file} 2>/dev/null || cp "$K_RUN/blobs/$name" ${file} || exit 1
done <"$k_portion_file"`;
}

function bundleFile({ bundle }: Pick<Args, "bundle">, folder: string): string {
  return `${folder}/bundles/${bundle?.sha256 ?? "none"}`;
}
