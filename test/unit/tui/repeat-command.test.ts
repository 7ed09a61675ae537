import { expect } from "chai";
import { repeatCommand } from "#tui/repeat-command.ts";

describe("the command that repeats a step", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["kcore orchestrate deploy_node n1,n2", "kcore orchestrate deploy_node --on n2"],
    ["kcore orchestrate deploy_node --feed nodes n1,n2", "kcore orchestrate deploy_node --feed nodes --on n2"],
    [
      "kcore orchestrate deploy_node --on 'role:worker and not dc:DC2' --dry-run",
      "kcore orchestrate deploy_node --dry-run --on n2",
    ],
    [
      "kcore orchestrate deploy_node 'n*' --set memory=8G --grant S3Z8NB0K --detach",
      "kcore orchestrate deploy_node --set memory=8G --grant S3Z8NB0K --on n2",
    ],
    [
      "kcore state apply disks nix --on n1 --on=n2 --set 'name=a b'",
      "kcore state apply disks nix --set 'name=a b' --on n2",
    ],
    [
      "kcore orchestrate deploy_node n1,n2 --dry-run --fail-on-change --no-stay --unknown-facts skip",
      "kcore orchestrate deploy_node --dry-run --fail-on-change --no-stay --unknown-facts skip --on n2",
    ],
    [
      "kcore state apply web --on n1,n2 --only 'a b' --from c --tags d,e --limit 'n*' --batch 25%",
      "kcore state apply web --only 'a b' --from c --tags d,e --limit 'n*' --batch 25% --on n2",
    ],
    ["kcore exec --on n1,n2 -- ls -l /etc", "kcore exec --on n2 -- ls -l /etc"],
    [
      "kcore orchestrate deploy_node n1 --set 'text=it'\\''s'",
      "kcore orchestrate deploy_node --set 'text=it'\\''s' --on n2",
    ],
  ];
  for (const [command, expected] of cases)
    it(`names one node as target: ${command}`, () => expect(repeatCommand(command, "n2")).to.equal(expected));

  it("is the original command if the target's place is unknown", () => {
    for (const command of [
      "kcore orchestrate deploy_node --set node_name=n1,n2",
      "kcore orchestrate deploy_node n1 --unheard-of n2",
      "some other 'unfinished",
    ])
      expect(repeatCommand(command, "n2")).to.equal(command);
    expect(repeatCommand("kcore orchestrate deploy_node n1")).to.equal("kcore orchestrate deploy_node n1");
  });
});
