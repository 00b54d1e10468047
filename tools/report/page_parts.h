// The report's template, style and script (tools/report/page), compiled into the program.
#pragma once

namespace hotpack {

extern const char kPageHtml[];  // with @NAME@ where page.cc inserts text
extern const char kPageCss[];
extern const char kPageScript[];

}  // namespace hotpack
