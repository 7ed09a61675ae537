import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { sh } from "../step/sh.ts";

const folder = "/nix/var/nix/profiles";

/**
 * ```yaml
 * nix.collected: { keep: 5 }
 * ```
 * Each profile in /nix/var/nix/profiles itself keeps `keep` generations, the present generation and the ones before it, and
 * all newer generations (after a rollback). The others are deleted, and then all store paths without a reference. If no profile
 * has too many generations, nothing is collected.
 */
export const nixCollected = defineModule({
  name: "nix.collected",
  summary: "Keeps a number of generations of each Nix profile, and the store free of what the others needed.",
  alsoKnownAs: ["nix-collect-garbage", "gc"],
  args: z.strictObject({
    keep: z
      .int()
      .min(1)
      .max(1000)
      .default(5)
      .describe("How many generations of each profile stay, the present one among them."),
    profiles: z
      .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "must be the name of a profile, without the folder"))
      .min(1)
      .optional()
      .describe("Only these profiles: kcore, system …; all unless given."),
  }),
  step: ({ keep, profiles }) => {
    const surplus = sh`keep=${keep}
surplus() {
  for profile in ${profiles ? profiles.map((name) => `${folder}/${name}`) : sh`${folder}/*`}; do
    # A profile is a link to one of its generations, which are links, too.
    case $profile in *-[0-9]*-link) continue ;; esac
    now=$(readlink "$profile") || continue
    now=\${now%-link} && now=\${now##*-}
    case $now in '' | *[!0-9]*) continue ;; esac
    old=0
    for link in "$profile"-*-link; do
      number=\${link#"$profile"-} && number=\${number%-link}
      case $number in '' | *[!0-9]*) continue ;; esac
      [ "$number" -gt "$now" ] || old=$((old + 1))
    done
    [ "$old" -le "$keep" ] || echo "$profile $((old - keep))"
  done
}`;
    return {
      effects: {
        writes: [{ is: "tree", path: "/nix" }],
        reads: [
          { is: "tree", path: folder },
          { is: "program", name: "nix-env" },
        ],
      },
      want: { surplus: "none" },
      probe: sh`${surplus}
found=$(surplus) || exit 1
fact surplus "\${found:-none}"`,
      apply: sh`${surplus}
surplus | while read -r profile count; do
  nix-env -p "$profile" --delete-generations "+$keep" >/dev/null 2>"$K_TMP/err" || { cat "$K_TMP/err" >&2 && exit 1; }
  note "$profile: $count generations less"
done || exit 1
nix-store --gc >"$K_TMP/gc" 2>&1 || { tail -n 5 "$K_TMP/gc" >&2 && exit 1; }
note "$(sed -n '/store paths deleted/p' "$K_TMP/gc")"`,
      tools: [
        { command: "nix-env", package: "nix-bin" },
        { command: "nix-store", package: "nix-bin" },
      ],
      timeout: 1800,
    };
  },
});
