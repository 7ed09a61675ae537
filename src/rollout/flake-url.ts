/** A flake on a forge: OWNER/REPO, then optionally a branch, a tag or a commit. */
const forge = /^(?<url>(?:github|gitlab|sourcehut):[^/?#]+\/[^/?#]+)(?:\/[^?#]*)?(?:\?(?<query>[^#]*))?$/;
/** A flake in a git repository with a URL of its own; Nix fetches one commit of it. */
const repository = /^(?<url>git\+(?:https?|ssh|git|file):\/\/[^?#]+)(?:\?(?<query>[^#]*))?$/;

/**
 * A flake's reference at a commit, as Nix accepts it; undefined if a commit cannot pin such a reference. On a forge the commit replaces the
 * branch or tag, since Nix refuses both at once. A repository keeps its branch, on which Nix may have to search for the commit.
 */
export function flakeUrl(flakeRef: string, rev: string): string | undefined {
  const ofForge = forge.exec(flakeRef)?.groups;
  if (ofForge) return withQuery(`${ofForge["url"]}/${rev}`, withoutKeys(["ref", "rev"], ofForge["query"]));
  const ofRepository = repository.exec(flakeRef)?.groups;
  if (ofRepository)
    return withQuery(ofRepository["url"] ?? "", [...withoutKeys(["rev"], ofRepository["query"]), `rev=${rev}`]);
  return undefined;
}

function withoutKeys(keys: readonly string[], query = ""): readonly string[] {
  return query.split("&").filter((part) => part !== "" && !keys.includes(part.replace(/=.*/, "")));
}

function withQuery(url: string, parts: readonly string[]): string {
  return parts.length === 0 ? url : `${url}?${parts.join("&")}`;
}
