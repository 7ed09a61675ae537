import { expect } from "chai";
import { flakeUrl } from "#rollout/flake-url.ts";
import { targetIdOf, UpdateSpec } from "#rollout/spec.ts";

const rev = "0123456789abcdef0123456789abcdef01234567";

describe("the URL of a flake at a commit", () => {
  const urls: Readonly<Record<string, string | undefined>> = {
    "github:o/r": `github:o/r/${rev}`,
    // Nix refuses a branch and a commit together.
    "github:o/r/v1.0": `github:o/r/${rev}`,
    "github:o/r?ref=main": `github:o/r/${rev}`,
    "github:o/r/main?dir=nixos&host=git.example.org": `github:o/r/${rev}?dir=nixos&host=git.example.org`,
    "gitlab:group%2Fsub/r/main": `gitlab:group%2Fsub/r/${rev}`,
    "sourcehut:~o/r": `sourcehut:~o/r/${rev}`,
    "git+https://host/r": `git+https://host/r?rev=${rev}`,
    // Some repositories need the branch to find the commit.
    "git+https://host/r?ref=main": `git+https://host/r?ref=main&rev=${rev}`,
    "git+ssh://git@host:2222/r.git?dir=nixos&ref=main": `git+ssh://git@host:2222/r.git?dir=nixos&ref=main&rev=${rev}`,
    "git+file:///srv/r": `git+file:///srv/r?rev=${rev}`,
    "git+https://host/r?rev=ffff": `git+https://host/r?rev=${rev}`,
    nixpkgs: undefined,
    "flake:nixpkgs": undefined,
    "path:/srv/r": undefined,
    "./r": undefined,
    "https://host/r.tar.gz": undefined,
    "tarball+https://host/r.tar.gz": undefined,
    "github:o": undefined,
    "github:o/r#web": undefined,
    "git+https://host/r#web": undefined,
  };
  for (const [flakeRef, url] of Object.entries(urls))
    it(`of ${flakeRef} is ${url ?? "none"}`, () => expect(flakeUrl(flakeRef, rev)).to.equal(url));

  it("gives the target its id, together with nixpkgsRev and systemProfile", () => {
    const id = (target: object): string =>
      targetIdOf({ spec: UpdateSpec.parse({ target: { flakeRev: rev, ...target }, selector: { allNodes: true } }) });
    // The branch or tag does not count beside the commit.
    expect(id({ flakeRef: "github:o/r/v1.0" })).to.equal(id({ flakeRef: "github:o/r/main" }));
    const targets = [
      { flakeRef: "github:o/r" },
      { flakeRef: "github:o/other" },
      { flakeRef: "github:o/r", systemProfile: "web" },
      { flakeRef: "github:o/r", nixpkgsRev: rev },
      { flakeRef: "github:o/r", nixpkgsRev: rev, systemProfile: "web" },
    ];
    expect(new Set(targets.map(id)).size).to.equal(targets.length);
  });
});
