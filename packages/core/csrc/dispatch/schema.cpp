// Parses operator schemas in PyTorch's grammar: `name.overload(Type name=default, *, ...) -> Type`.
#include <cctype>
#include <cstring>
#include <deque>
#include <limits>
#include <unordered_map>

#include "dispatch.h"

namespace rl {

namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text), p_(text.c_str()) {}

  OpRecord* parse() {
    auto op = std::make_unique<OpRecord>();
    *static_cast<Op*>(op.get()) = Op{};
    op->schema_text = text_;
    op->name_text = word("an operator name");
    expect('(');
    bool keyword_only = false;
    while (!accept(')')) {
      if (accept('*')) {
        keyword_only = true;
      } else {
        Param p = param();
        p.keyword_only = keyword_only;
        if (!keyword_only) ++op->npositional;
        op->param_store.push_back(p);
      }
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    skip();
    if (std::strncmp(p_, "->", 2)) bad("'->'");
    p_ += 2;
    returns(op.get());
    skip();
    if (*p_) bad("the end");
    if (op->param_store.size() > kMaxParams) bad("at most 24 parameters");
    return op.release();
  }

 private:
  [[noreturn]] void bad(const char* wanted) {
    fail(PyExc_ValueError,
         "schema: expected %s at column %d, got '%s'. See docs/guide/adding-an-op.md for the grammar.", wanted,
         static_cast<int>(p_ - text_.c_str()), text_.c_str());
  }
  void skip() {
    while (std::isspace(static_cast<unsigned char>(*p_))) ++p_;
  }
  bool accept(char c) {
    skip();
    if (*p_ != c) return false;
    ++p_;
    return true;
  }
  void expect(char c) {
    char wanted[4] = {'\'', c, '\'', 0};
    if (!accept(c)) bad(wanted);
  }
  std::string word(const char* what) {
    skip();
    const char* start = p_;
    while (std::isalnum(static_cast<unsigned char>(*p_)) || *p_ == '_' || *p_ == '.' || *p_ == ':') ++p_;
    if (p_ == start) bad(what);
    return {start, p_};
  }

  // Type[(a!)][[n]][?], in the orders that occur: Tensor(a!), Tensor?[], int[2]?, Tensor(a)[].
  void type(Param& p) {
    static const std::unordered_map<std::string, ParamType> types = {
        {"Tensor", ParamType::Tensor},       {"int", ParamType::Int},       {"SymInt", ParamType::Int},
        {"float", ParamType::Float},         {"bool", ParamType::Bool},     {"Scalar", ParamType::Scalar},
        {"number", ParamType::Scalar},       {"str", ParamType::Str},       {"ScalarType", ParamType::DType},
        {"Layout", ParamType::Layout},       {"Device", ParamType::Device}, {"MemoryFormat", ParamType::MemoryFormat},
        {"Generator", ParamType::Generator}, {"Any", ParamType::Any}};
    std::string name = word("a type");
    auto it = types.find(name);
    if (it == types.end()) bad("a known type");
    p.type = it->second;
    for (;;) {
      if (*p_ == '(') {
        ++p_;
        std::string alias;
        while (*p_ && *p_ != ')') alias += *p_++;
        if (!*p_) bad("')'");
        ++p_;
        (alias.find('!') != std::string::npos ? p.is_write : p.is_alias) = true;
      } else if (*p_ == '[') {
        ++p_;
        p.list_size = 0;
        while (std::isdigit(static_cast<unsigned char>(*p_))) p.list_size = p.list_size * 10 + (*p_++ - '0');
        if (*p_++ != ']') bad("']'");
        switch (p.type) {
          case ParamType::Tensor:
            p.type = p.optional ? ParamType::Any : ParamType::Tensors;
            break;  // Tensor?[]: an index
          case ParamType::Int: p.type = ParamType::Ints; break;
          case ParamType::Float: p.type = ParamType::Floats; break;
          case ParamType::Bool: p.type = ParamType::Bools; break;
          default: bad("a list of Tensor, int, float or bool");
        }
        p.optional = false;
      } else if (*p_ == '?') {
        ++p_;
        p.optional = true;
      } else {
        return;
      }
    }
  }

  Param param() {
    Param p{};
    type(p);
    p.name = keep(word("a parameter name"));
    if (accept('=')) {
      p.has_default = true;
      default_value(p);
    }
    return p;
  }

  static const char* keep(std::string s) {
    static std::deque<std::string> kept;
    kept.push_back(std::move(s));
    return kept.back().c_str();
  }

  void default_value(Param& p) {
    skip();
    Arg& a = p.default_value;
    if (accept('[')) {
      static std::deque<std::vector<int64_t>> kept;
      kept.emplace_back();
      while (!accept(']')) {
        kept.back().push_back(std::stoll(literal()));
        accept(',');
      }
      a.kind = p.type == ParamType::Floats ? Kind::Floats : Kind::Ints;
      a.count = static_cast<int32_t>(kept.back().size());
      a.ints = kept.back().data();
      if (a.kind == Kind::Floats && a.count) bad("an empty list");
      return;
    }
    if (*p_ == '\'' || *p_ == '"') {
      char quote = *p_++;
      std::string s;
      while (*p_ && *p_ != quote) s += *p_++;
      expect(quote);
      a.kind = Kind::Object;
      a.object = p.default_object = Ref<>::check(PyUnicode_InternFromString(s.c_str())).release();
      return;
    }
    std::string s = literal();
    if (s == "None") return;
    if (s == "True" || s == "False") {
      a.kind = Kind::Bool;
      a.i = s == "True";
    } else if (s == "inf" || s == "-inf") {
      a.kind = Kind::Float;
      a.d = std::numeric_limits<double>::infinity() * (s == "inf" ? 1 : -1);
    } else if (s.find_first_not_of("-0123456789") == std::string::npos && p.type != ParamType::Float) {
      a.kind = Kind::Int;
      a.i = std::stoll(s);
      if (p.type == ParamType::Ints) {  // a lone int for a list
        static std::deque<std::vector<int64_t>> kept;
        kept.emplace_back(std::max(p.list_size, 1), a.i);
        a.kind = Kind::Ints;
        a.count = static_cast<int32_t>(kept.back().size());
        a.ints = kept.back().data();
      }
    } else {
      a.kind = Kind::Float;
      try {
        a.d = std::stod(s);
      } catch (const std::exception&) {
        bad("a default value");
      }
    }
  }

  std::string literal() {
    skip();
    const char* start = p_;
    while (std::isalnum(static_cast<unsigned char>(*p_)) || *p_ == '_' || *p_ == '.' || *p_ == '-' || *p_ == '+') ++p_;
    if (p_ == start) bad("a value");
    return {start, p_};
  }

  void returns(OpRecord* op) {
    bool tuple = accept('(');
    do {
      if (tuple && accept(')')) return;  // `-> ()`
      Param p{};
      type(p);
      skip();
      if (std::isalpha(static_cast<unsigned char>(*p_))) op->result_names.push_back(word("a result name"));
      if (p.is_alias) op->returns_view = true;
      if (p.type == ParamType::Tensor) ++op->noutputs;
      if (p.type == ParamType::Tensors) op->noutputs = -1;
    } while (tuple && accept(','));
    if (tuple) expect(')');
  }

  const std::string& text_;
  const char* p_;
};

// NumPy's spellings, which PyTorch takes too.
const std::pair<const char*, const char*> kSpellings[] = {{"self", "input"}, {"dim", "axis"}, {"keepdim", "keepdims"},
                                                          {"self", "x"},     {"self", "a"},   {"self", "x1"},
                                                          {"other", "x2"}};

std::unordered_map<std::string, OpRecord*>& ops() {
  static auto* table = new std::unordered_map<std::string, OpRecord*>();
  return *table;
}

}  // namespace

OpRecord* parse_schema(const std::string& schema) {
  OpRecord* op = Parser(schema).parse();
  op->name = op->name_text.c_str();
  op->schema = op->schema_text.c_str();
  op->params = op->param_store.data();
  op->nparams = static_cast<int>(op->param_store.size());
  op->inplace_only = op->nparams && op->params[0].is_write;
  op->differentiable = true;
  for (int i = 0; i < op->nparams; ++i) {
    op->names.push_back(PyUnicode_InternFromString(op->params[i].name));
    op->keys.emplace_back(op->names[i], i);
  }
  for (auto& [ours, theirs] : kSpellings)
    for (int i = 0; i < op->nparams; ++i) {
      bool taken = false;
      for (auto& key : op->keys) taken |= !PyUnicode_CompareWithASCIIString(key.first, theirs);
      if (!taken && !std::strcmp(op->params[i].name, ours))
        op->keys.emplace_back(PyUnicode_InternFromString(theirs), i);
    }
  int first = op->npositional && (op->params[0].type == ParamType::Tensor) ? 1 : 0;
  if (first < op->npositional && op->params[first].type == ParamType::Ints && !op->params[first].list_size)
    op->varargs = first;
  return op;
}

OpRecord* find_op(const std::string& name) {
  auto it = ops().find(name);
  return it == ops().end() ? nullptr : it->second;
}

void add_op(OpRecord* op) {
  if (!ops().emplace(op->name_text, op).second)
    fail(PyExc_ValueError, "add_op: the operator '%s' is registered already. Choose another name or overload.",
         op->name);
}

}  // namespace rl
