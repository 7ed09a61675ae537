import { sh, type Sh } from "../sh.ts";

/** Splits a store path's name into name and version, as Nix does: the version begins with a digit. */
const versionedPath = /^\/nix\/store\/[^-]+-(.+?)-(\d+(?:\.\d+)*)$/;

/**
 * Refuses to replace a newer version of the same name (S-22). Undefined if the path has no version of numbers and dots.
 */
export function refuseDowngrade(profile: string, path: string): Sh | undefined {
  const [, name, version] = versionedPath.exec(path) ?? [];
  if (name === undefined || version === undefined) return undefined;
  const has = `${profile} has version `;
  const hint = `, newer than ${version}: use that version of ${name} here; to go back all the same, set downgrade (deploy_node: --set allow_downgrade=true)`;
  return sh`old=$(had profile)
case $old in */*-${name}-[0-9]*) old=\${old##*-${name}-} ;; *) old= ;; esac
case $old in '' | *[!0-9.]*) ;; *)
  old_rest=$old. new_rest=${version}.
  while [ -n "$old_rest$new_rest" ]; do
    old_part=\${old_rest%%.*} new_part=\${new_rest%%.*} old_rest=\${old_rest#*.} new_rest=\${new_rest#*.}
    [ "\${old_part:-0}" -le "\${new_part:-0}" ] || refuse NIX_DOWNGRADE ${has}"$old"${hint}
    [ "\${old_part:-0}" -ge "\${new_part:-0}" ] || break
  done
esac`;
}
