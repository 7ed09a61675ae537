/** A forge's flake: one place behind the repository holds a branch, a tag or a commit. */
const forge = /^(?<place>(?:github|gitlab|sourcehut):[^/?#]+\/[^/?#]+)(?:\/[^?#]*)?(?:\?(?<query>[^#]*))?$/;
/** Flakes in a repository that a URL names; Nix fetches one commit of it. */
const repository = /^(?<place>git\+(?:https?|ssh|git|file):\/\/[^?#]+)(?:\?(?<query>[^#]*))?$/;

/**
 * A flake's reference at a commit, as Nix takes it; undefined when no commit pins such a reference. A forge's flake has its commit in
 * place of a branch or tag, since Nix refuses both at once; a repository keeps its branch, on which the commit may have to be looked for.
 */
export function flakeUrl(flakeRef: string, rev: string): string | undefined {
  const ofForge = forge.exec(flakeRef)?.groups;
  if (ofForge) return withQuery(`${ofForge["place"]}/${rev}`, without(["ref", "rev"], ofForge["query"]));
  const ofRepository = repository.exec(flakeRef)?.groups;
  if (ofRepository)
    return withQuery(ofRepository["place"] ?? "", [...without(["rev"], ofRepository["query"]), `rev=${rev}`]);
  return undefined;
}

function without(keys: readonly string[], query = ""): readonly string[] {
  return query.split("&").filter((part) => part !== "" && !keys.includes(part.replace(/=.*/, "")));
}

function withQuery(place: string, parts: readonly string[]): string {
  return parts.length === 0 ? place : `${place}?${parts.join("&")}`;
}
