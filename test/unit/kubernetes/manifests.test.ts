import { expect } from "chai";
import { knownSecrets, secret } from "#engine/step/secret.ts";
import { formatProblem, type KcoreError } from "#errors/problem.ts";
import { readObjects, wantedObject } from "#kubernetes/manifests.ts";
import { rejectionOf } from "#support/rejection.ts";

const map = (name: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\n`;
const refusalOf = (text: string): Promise<KcoreError> =>
  rejectionOf(Promise.resolve().then(() => readObjects("m.yaml", text)));
const namesOf = (text: string): string[] => readObjects("m.yaml", text).map(({ object }) => object.metadata.name);

describe("manifests", () => {
  it("are the documents of a text, empty ones left out, and the items of a List", () => {
    expect(namesOf(`${map("a")}---\n---\n${map("b")}`)).to.deep.equal(["a", "b"]);
    const items = map("c").replaceAll(/^/gm, "    ").replace("    ", "  - ").trimEnd();
    expect(namesOf(`apiVersion: v1\nkind: List\nitems:\n${items}\n`)).to.deep.equal(["c"]);
  });

  it("are refused with the places of all mistakes", async () => {
    const text = `${map("a").replace("kind: ConfigMap\n", "")}---\n${map("b").replace("name: b", "generateName: b-")}`;
    const { problems } = await refusalOf(text);
    expect(problems.map(formatProblem)).to.deep.equal([
      "m.yaml:1:1  “kind” is missing  [YAML_KEY_MISSING]",
      "m.yaml:6:11  “name” is missing in “metadata”  [YAML_KEY_MISSING]",
    ]);
  });

  it("with an encrypted value in a file are refused, because it would be applied still encrypted", async () => {
    const text = `${map("a")}data:\n  key: age:YWdlLWVuY3J5cHRpb24ub3JnL3YxCg==\n`;
    const { problems } = await refusalOf(text);
    expect(problems.map(formatProblem)).to.deep.equal([
      "m.yaml:5:8  a sealed value is not opened in a file of manifests  [SECRET_MISPLACED]",
    ]);
  });

  it("of a Secret have stringData in data, with both forms masked", () => {
    const manifest = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "s" },
      stringData: { password: secret("correct-horse") },
      data: { other: Buffer.from("battery-staple").toString("base64") },
    };
    const { object } = wantedObject(manifest);
    const data = { other: "YmF0dGVyeS1zdGFwbGU=", password: "Y29ycmVjdC1ob3JzZQ==" };
    expect(object).to.deep.equal({ apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, data });
    for (const value of [...Object.values(data), "correct-horse", "battery-staple"])
      expect(knownSecrets(), value).to.include(value);
  });

  it("of a Secret are refused at the place of a value that is no text", async () => {
    const text = `${map("a").replace("ConfigMap", "Secret")}stringData: { port: 5432 }\ndata: { a: 1, b: eA== }\n`;
    const { problems } = await refusalOf(text);
    expect(problems.map(formatProblem)).to.deep.equal([
      "m.yaml:4:21  “stringData.port” must be a text, in quotes: it is a Secret's  [YAML_TYPE]",
      "m.yaml:5:12  “data.a” must be a text, in quotes: it is a Secret's  [YAML_TYPE]",
    ]);
    for (const { conceal } of problems) expect(conceal).to.equal(true);
  });

  it("know the paths of values that were given as secrets", () => {
    const spec = {
      env: [
        { name: "A", value: "x" },
        { name: "B", value: secret("sesame-open") },
      ],
    };
    const { object, secrets } = wantedObject({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec });
    expect(object["spec"]).to.deep.equal({
      env: [
        { name: "A", value: "x" },
        { name: "B", value: "sesame-open" },
      ],
    });
    expect([...secrets]).to.deep.equal(['["spec","env","1","value"]']);
  });
});
