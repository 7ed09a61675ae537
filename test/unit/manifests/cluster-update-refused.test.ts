import { expect } from "chai";
import { readManifests } from "#manifests/read-manifests.ts";
import { casesOf } from "#support/cases/read.ts";
import { problemsIn } from "#support/problems.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";
const nixos = `kind: ClusterUpdate
metadata: { name: r1 }
spec:
  target: { flakeRef: "github:o/r", flakeRev: ${commit} }
  selector: { nodeIds: [n1, n2] }
`;
const runtime = nixos.replace(/target: .*/, "target: { version: 1.4.0 }");

interface Refused {
  readonly more?: string;
  readonly behind?: string;
  readonly target?: string;
  readonly selector?: string;
  readonly rev?: string;
  readonly flake?: string;
  readonly gate?: string;
  readonly replace?: readonly [string, string];
  readonly runtime?: string;
  readonly manifest?: string;
  readonly told: string | readonly string[];
}

function textOf(given: Omit<Refused, "told">): string {
  const { gate, more = gate && `healthGates: [{ name: api, ${gate} }]`, behind, replace = ["", ""] } = given;
  let text = given.manifest ?? nixos;
  if (given.target !== undefined) text = text.replace(/target: .*/, `target: ${given.target}`);
  if (given.selector !== undefined) text = text.replace(/selector: .*/, `selector: ${given.selector}`);
  if (given.rev !== undefined) text = text.replace(commit, given.rev);
  if (given.flake !== undefined) text = text.replace('"github:o/r"', JSON.stringify(given.flake));
  if (given.runtime !== undefined) text = `${runtime}  ${given.runtime}\n`;
  return (
    text.replace(...replace) + (more === undefined ? "" : `  ${more}\n`) + (behind === undefined ? "" : `${behind}\n`)
  );
}

const problemsOf = (text: string): string[] =>
  problemsIn(() => readManifests("u.yaml", text)).map((line) =>
    line.replace(/^u\.yaml:(\d+:\d+)\+\d+ /, (_, place: string) => `${place} `),
  );

describe("a faulty manifest of a cluster update", () => {
  it("differs from a valid one", () => {
    for (const text of [nixos, runtime]) expect(readManifests("u.yaml", text)).to.have.length(1);
  });

  for (const [what, { told: problems, ...given }] of Object.entries(
    casesOf<Record<string, Refused>>("cluster-update-refused.yaml"),
  ))
    it(`is refused at its place, with a hint: ${what}`, () => {
      expect(problemsOf(textOf(given))).to.deep.equal([problems].flat());
      expect([problems].flat()).to.satisfy((lines: readonly string[]) => lines.every((line) => line.includes(" | ")));
    });

  it("is refused with all its problems at once", () => {
    const text = textOf({ selector: "{}", rev: "main", replace: ["r1", "r/1"] });
    expect(problemsOf(text)).to.have.length(2);
    expect(problemsOf(textOf({ more: "drain: { after: {} }\n  window: { from: 01:00, to: 01:00 }" }))).to.have.length(
      3,
    );
  });
});
