// Stand-in until pointwise.cpp, copy.cpp and iterator.cpp are here: the branch that brings them deletes this file.
#include "pointwise.h"
#include "copy.h"
#include "iterator.h"
#include <cmath>
#include <cstring>
#include <string>
#include <complex>
namespace rl {
template<class T, class F> void loop2(char*const*d,const int64_t*s,int64_t n,const void*p){ for(int64_t i=0;i<n;++i) *(T*)(d[0]+i*s[0])=F()(*(T*)(d[1]+i*s[1]),*(T*)(d[2]+i*s[2])); }
template<class T> struct Add{T operator()(T a,T b){return a+b;}}; template<class T> struct Mul{T operator()(T a,T b){return a*b;}};
template<class T,class F> void loop1(char*const*d,const int64_t*s,int64_t n,const void*p){ for(int64_t i=0;i<n;++i) *(T*)(d[0]+i*s[0])=F()(*(T*)(d[1]+i*s[1])); }
struct Ex{float operator()(float a){return std::exp(a);}};
Loop find_loop(const char*op,DType t){ std::string s=op; 
 if(s=="add"){ if(t==DType::Float32) return loop2<float,Add<float>>; if(t==DType::Float64) return loop2<double,Add<double>>; if(t==DType::Int64) return loop2<int64_t,Add<int64_t>>;}
 if(s=="mul"){ if(t==DType::Float32) return loop2<float,Mul<float>>; if(t==DType::Float64) return loop2<double,Mul<double>>; if(t==DType::Int64) return loop2<int64_t,Mul<int64_t>>;}
 if(s=="exp"&&t==DType::Float32) return loop1<float,Ex>;
 return nullptr; }
template<class A,class B> void cst(char*const*d,const int64_t*s,int64_t n,const void*){for(int64_t i=0;i<n;++i) *(B*)(d[0]+i*s[0])=(B)*(A*)(d[1]+i*s[1]);}
template<class A> Loop to(DType t){switch(t){case DType::Float32:return cst<A,float>;case DType::Float64:return cst<A,double>;case DType::Int64:return cst<A,int64_t>;case DType::Int32:return cst<A,int32_t>;default:return cst<A,bool>;}}
Loop find_cast(DType f,DType t){switch(f){case DType::Float32:return to<float>(t);case DType::Float64:return to<double>(t);case DType::Int64:return to<int64_t>(t);case DType::Int32:return to<int32_t>(t);default:return to<bool>(t);}}
static void rec(Loop l,int d,int nd,const int64_t*sh,int no,char**p,const int64_t*const*st,const void*pr){
 if(d==nd-1||nd==0){int64_t s[8];for(int k=0;k<no;++k)s[k]=nd?st[k][d]:0;l(p,s,nd?sh[d]:1,pr);return;}
 char*q[8];for(int k=0;k<no;++k)q[k]=p[k];for(int64_t i=0;i<sh[d];++i){rec(l,d+1,nd,sh,no,q,st,pr);for(int k=0;k<no;++k)q[k]+=st[k][d];}}
void run_pointwise(Loop l,int nd,const int64_t*sh,int no,char*const*data,const int64_t*const*st,const void*pr){char*p[8];for(int k=0;k<no;++k)p[k]=data[k];rec(l,0,nd,sh,no,p,st,pr);}
void copy_strided(DType dd,char*d,const int64_t*ds,DType sd,const char*s,const int64_t*ss,int nd,const int64_t*sh){char*data[2]={d,(char*)s};const int64_t*st[2]={ds,ss};run_pointwise(find_cast(sd,dd),nd,sh,2,data,st,nullptr);}
void fill_strided(char*d,int sz,int nd,const int64_t*sh,const int64_t*st,const void*v){if(!nd){memcpy(d,v,sz);return;}for(int64_t i=0;i<sh[0];++i)fill_strided(d+i*st[0],sz,nd-1,sh+1,st+1,v);}
void fill_arange(DType t,char*d,int64_t n,double a,double s){for(int64_t i=0;i<n;++i)((float*)d)[i]=a+i*s;}
void fill_arange(DType t,char*d,int64_t n,int64_t a,int64_t s){for(int64_t i=0;i<n;++i)((int64_t*)d)[i]=a+i*s;}
void fill_linspace(DType t,char*d,int64_t n,double a,double s){}
}
