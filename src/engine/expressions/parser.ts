import { parse } from "handlebars/dist/cjs/handlebars/compiler/base.js";
import parser from "handlebars/dist/cjs/handlebars/compiler/parser.js";

/**
 * Patches Handlebars' lexer: an index at the end of a path (`disks.0`) is a name, as it is inside a path (`disks.0.name`).
 * Unpatched, the lexer reads a number there, which the parser refuses.
 */
const { lexer, symbols_: symbols } = parser;
const lex = lexer.lex.bind(lexer);
let last: number | undefined;
lexer.lex = () => {
  const token = lex();
  const isIndex = last === symbols.SEP && token === symbols.NUMBER && /^\d+$/.test(lexer.yytext);
  last = isIndex ? symbols.ID : token;
  return last;
};

/** The syntax tree of a template. @throws Error at the first unreadable character */
export function parseTemplate(text: string): unknown {
  return parse(text);
}
