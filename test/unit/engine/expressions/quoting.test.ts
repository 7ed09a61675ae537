import { expect } from "chai";
import { type Quoting, QuotingScanner } from "#engine/expressions/quoting.ts";

/** What stands where `@` does. */
const places: readonly (readonly [text: string, state: Quoting])[] = [
  ["echo @", "word"],
  ["echo 'a b'@", "word"],
  ["echo 'a @'", "in quotes"],
  ['echo "a @"', "in quotes"],
  ['echo "a\\"@"', "in quotes"],
  ["echo \\'@", "word"],
  ['echo \\"@', "word"],
  ['x="$(cat @)"', "word"],
  ['x="$(cat "a$(b) @")"', "in quotes"],
  ['x="$(printf "%s" @)" y', "word"],
  ['x="$( (a; b) @)"', "word"],
  ['x="`cat @`"', "in back quotes"],
  ["x=`cat @`", "in back quotes"],
  ["x=$((1 + @))", "in an arithmetic expansion"],
  ["x=$(((1 + 2) * @))", "in an arithmetic expansion"],
  ["x=$((1 + $(cat @)))", "word"],
  ["x=$((1 + 2)) @", "word"],
  ["x=${y:-@}", "word"],
  ['x="${y:-@}"', "in quotes"],
  ['x="${y:-"@"}"', "in quotes"],
  ['x="${y:-$(cat @)}"', "word"],
  ['x="${y#"a"}" @', "word"],
  ["x=${y#'}'} @", "word"],
  ["x=${#y} @", "word"],
  ["x=$# @", "word"],
  ["f() { a; } @", "word"],
  ["(cd a && b) @", "word"],
  ["echo a # it's @", "in a comment"],
  ["echo a#@", "word"],
  ["echo ${x#*a} @", "word"],
  ["# it's\necho @", "word"],
  ["cat <<END\n@\nEND\n", "in a here-document"],
  ["cat <<'END'\nit's\nEND\necho @", "word"],
  ["cat <<-END\n\tx\n\tEND\necho @", "word"],
  ["cat <<A; cat <<B\n1\nA\n@\nB\n", "in a here-document"],
  ["cat <<A; cat <<B\n1\nA\n2\nB\necho @", "word"],
  ["case x in a) echo @ ;; esac", "word"],
  ["case x in a)# it's\n echo @ ;; esac", "word"],
  ["echo $(x)#it's @", "in quotes"],
  ["echo \\ #it's @", "in quotes"],
  ["n=$((1 << 2))\necho @", "word"],
  ["cat <<END\nx \\\nEND\n@", "in a here-document"],
  ["cat <<END\nx \\\\\nEND\n@", "word"],
  ["cat <<'END'\nx \\\nEND\n@", "word"],
  ["cat <<END\n\tEND\n@", "in a here-document"],
  ["cat <<END-OF-IT\nEND\n@", "in a here-document"],
  ["cat <<END-OF-IT\nEND-OF-IT\n@", "word"],
  ["echo $@", "right behind a $"],
  ["echo \\$@", "word"],
  ["echo '$'@", "word"],
  ["echo \\@", "right behind a backslash"],
  ["echo '\\'@", "word"],
  ["echo $'it\\'s @'", "behind $'"],
  ["echo '$' @", "word"],
  ['f() { x="${y#\'"\'}"; }; echo "@"', 'behind a single quote in "${"'],
  ['f() { x="${y#\'"\'}"; }\necho "$x" @', "in quotes"],
  ['x="$(case a in a) echo "@" ;; esac)"', "behind a case in $("],
  ["x=$(case @ in a) b ;; esac)", "behind a case in $("],
  ["x=$(echo in-case x) @", "word"],
];

describe("the quoting of a shell text", () => {
  for (const [text, state] of places)
    it(`${JSON.stringify(text)}: ${state}`, () => {
      const scanner = new QuotingScanner();
      scanner.feed(text.slice(0, text.indexOf("@")));
      expect(scanner.state).to.equal(state);
    });
});
