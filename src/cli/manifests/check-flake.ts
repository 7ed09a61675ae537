import { flakeUrl } from "#rollout/flake-url.ts";

/** What says a flake, for hints. */
const forms = "github:OWNER/REPO, or git+https://HOST/REPO";

/** Why nodes could not build what a flake's reference says together with a commit; undefined when they could. */
export function flakeFault(flakeRef: string): { readonly message: string; readonly hint: string } | undefined {
  if (/[\s<>"]/.test(flakeRef)) return { message: `“${flakeRef}” is no reference to a flake`, hint: forms };
  if (flakeRef.includes("#"))
    return {
      message: "a flake's reference names no output",
      hint: "systemProfile: NAME chooses nixosConfigurations.NAME",
    };
  if (/^(?:\.|path:)/.test(flakeRef))
    return { message: `“${flakeRef}” is a folder of this machine, of which nodes know nothing`, hint: forms };
  // A branch or tag there (`github:o/r/v1.0`) is for people: the commit decides.
  const pinned =
    /[?&]rev=/.test(flakeRef) || /^(?:github|gitlab|sourcehut):[^/]+\/[^/]+\/[0-9a-f]{40}(?:\?|$)/.test(flakeRef);
  if (pinned)
    return { message: `“${flakeRef}” pins a commit of its own`, hint: "leave it out there: flakeRev says it" };
  return flakeUrl(flakeRef, "0".repeat(40)) === undefined
    ? { message: `“${flakeRef}” is no flake that a commit pins`, hint: forms }
    : undefined;
}

/** How a whole commit is found, from what stands in its place. */
export function commitHint(text: string): string {
  if (/^[0-9a-f]{40}$/i.test(text)) return `in lower case: ${text.toLowerCase()}`;
  return /^\w[\w./-]{0,38}$/.test(text) ? `git rev-parse ${text} prints it` : "git rev-parse HEAD prints it";
}
