import { expect } from "chai";
import { needsShell } from "#cli/adhoc/exec-command.ts";

describe("kcore exec", () => {
  it("hints at --shell if a single argument with shell syntax was not found as a program", () => {
    for (const word of ["a; b", "df -h | tail -1", "echo $HOME", "ls *"])
      expect(needsShell({ argv: [word], shell: false }, [127]), word).to.equal(true);
    expect(needsShell({ argv: ["nosuch"], shell: false }, [127])).to.equal(false);
    expect(needsShell({ argv: ["a; b"], shell: true }, [127])).to.equal(false);
    expect(needsShell({ argv: ["a; b"], shell: false }, [0, undefined])).to.equal(false);
  });
});
