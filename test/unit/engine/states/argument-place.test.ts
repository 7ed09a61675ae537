import { expect } from "chai";
import { argumentPlace } from "#engine/states/argument-place.ts";
import { parseSource } from "#engine/yaml/parse.ts";

/** The text at the place found for this error message. */
const place = (yaml: string, message: string) => {
  const found = argumentPlace(parseSource("s.yaml", yaml), message);
  return found && yaml.split("\n")[found.line - 1]?.slice(found.column - 1, found.column - 1 + (found.length ?? 1));
};

describe("argumentPlace", () => {
  const args = "path: /srv/app/conf\nowner: app\nnames: [nginx, nginx-extras]\n";

  it("is the longest argument that the message names", () => {
    expect(place(args, "chown: invalid user: 'app:root'")).to.equal("app");
    expect(place(args, "E: Unable to locate package nginx-extras")).to.equal("nginx-extras");
    expect(place(args, "/srv/app/conf: owner app")).to.equal("/srv/app/conf");
  });

  it("is the first argument when the message names none as a whole word", () => {
    expect(place(args, "happily ever after")).to.equal("/srv/app/conf");
    expect(place("{ cmd: exit 3, cwd: /tmp }", "")).to.equal("exit 3");
    expect(place("names:\n  - one\n  - two\n", "")).to.equal("one");
  });

  it("is the first line of a block scalar", () => {
    expect(place("cmd: |\n  echo one\n  false\n", "")).to.equal("echo one");
    expect(place("cmd: >-  # folded\n\n    echo two  \n    more\n", "")).to.equal("echo two");
    expect(place("cmd: |\n\ncwd: /tmp\n", "")).to.equal("|");
  });

  it("is undefined without arguments", () =>
    expect(argumentPlace(parseSource("s.yaml", "{}"), "x")).to.equal(undefined));
});
